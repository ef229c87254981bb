"""Two images in, corresponding points out; nothing crashes and nothing is NaN."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError, MlError, ShapeError, UnknownNameError
from ml.keypoints import match_images, transform_points


@pytest.mark.parametrize("name", ["default", "sift", "orb", "akaze", "kaze"])
def test_known_motion_is_recovered(
    name: str, vessels: np.ndarray, warped_vessels: tuple[np.ndarray, np.ndarray]
) -> None:
    warped, truth = warped_vessels
    found = match_images(vessels, warped, descriptor=name)
    assert len(found) >= 25
    error = np.hypot(*(transform_points(truth, found.xy_a) - found.xy_b).T)
    assert (error < 3).mean() > 0.95
    assert np.median(error) < 1.2
    assert (np.diff(found.score) <= 0).all(), "strongest first"
    assert ((found.score >= 0) & (found.score <= 1)).all()


def test_another_detector_can_be_asked_for(vessels: np.ndarray) -> None:
    found = match_images(vessels, vessels, descriptor="sift", detector="akaze", max_keypoints=100)
    assert 50 < len(found) <= 100


def test_identical_images_match_in_place(vessels: np.ndarray) -> None:
    found = match_images(vessels, vessels)
    np.testing.assert_allclose(found.xy_a, found.xy_b, atol=1e-3)
    assert len(found) > 100


@pytest.mark.parametrize(
    "change",
    [
        lambda i: i[:, :, 1],
        lambda i: np.dstack([i, np.full(i.shape[:2], 255, np.uint8)]),
        lambda i: i.astype(np.uint16) * 16,
        lambda i: i.astype(np.float64) / 255,
        lambda i: cv2.resize(i, (400, 300)),
    ],
    ids=["grey", "rgba", "16-bit", "float", "another size"],
)
def test_other_kinds_of_image_match_too(change: object, vessels: np.ndarray) -> None:
    found = match_images(vessels, change(vessels))  # type: ignore[operator]
    assert len(found) > 50
    assert np.isfinite(found.score).all()


def _dot() -> np.ndarray:
    image = np.full((64, 64), 60, np.uint8)
    cv2.circle(image, (32, 32), 4, 200, -1)
    return image


@pytest.mark.parametrize(
    "image",
    [np.zeros((64, 64, 3), np.uint8), np.full((64, 64), 255, np.uint8), _dot()],
    ids=["black", "white", "one dot"],
)
def test_images_without_texture_give_no_matches(image: np.ndarray, vessels: np.ndarray) -> None:
    for a, b in ((image, vessels), (vessels, image), (image, image)):
        found = match_images(a, b)
        assert found.xy_a.shape == found.xy_b.shape == (len(found), 2)
        assert np.isfinite(found.score).all()
        assert a is b or len(found) == 0


def test_unrelated_images_give_none(vessels: np.ndarray) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (360, 480), np.uint8)
    assert len(match_images(vessels, cv2.GaussianBlur(noise, (0, 0), 2))) == 0


def test_bad_input_is_one_clear_error(vessels: np.ndarray) -> None:
    with pytest.raises(UnknownNameError, match="unknown descriptor 'graph'"):
        match_images(vessels, vessels, descriptor="graph")
    with pytest.raises(BadInputError, match="max_keypoints: expected at least 1, got 0"):
        match_images(vessels, vessels, max_keypoints=0)
    with pytest.raises(ShapeError):
        match_images(vessels, np.zeros((3, 3), np.uint8))
    with pytest.raises(MlError):
        match_images(vessels, np.zeros(7))

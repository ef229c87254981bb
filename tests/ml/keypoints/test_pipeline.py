"""Matching of two images."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError, MlError, ShapeError, UnknownNameError
from ml.geometry import transform_points
from ml.keypoints import load_descriptor, match_images, views
from ml.keypoints.detect import DetectorConfig, detect_keypoints
from ml.keypoints.features import extract
from ml.keypoints.pipeline import MatchConfig, match_features


@pytest.mark.parametrize("name", ["default", "sift", "orb", "akaze", "kaze"])
def test_known_motion_is_recovered(
    name: str, vessels: np.ndarray, warped_vessels: tuple[np.ndarray, np.ndarray]
) -> None:
    warped, truth = warped_vessels
    matches = match_images(vessels, warped, descriptor=name)
    assert len(matches) >= 25
    error = np.hypot(*(transform_points(truth, matches.xy_a) - matches.xy_b).T)
    assert (error < 3).mean() > 0.95
    assert np.median(error) < 1.2
    assert (np.diff(matches.score) <= 0).all(), "strongest first"
    assert ((matches.score >= 0) & (matches.score <= 1)).all()


def test_another_detector_can_be_selected(vessels: np.ndarray) -> None:
    matches = match_images(vessels, vessels, descriptor="sift", detector="akaze", max_keypoints=100)
    assert 50 < len(matches) <= 100


def test_the_number_of_matches_is_at_most_the_requested_key_points(
    vessels: np.ndarray, warped_vessels: tuple[np.ndarray, np.ndarray]
) -> None:
    """Completion finds key points of b in a as well: without the bound there are about 350."""
    every = match_images(vessels, warped_vessels[0], "sift", max_keypoints=300)
    assert len(every) == 300
    assert every.score.min() > 0
    assert len(match_images(vessels, warped_vessels[0], "sift", max_keypoints=80)) <= 80


def test_identical_images_match_in_place(vessels: np.ndarray) -> None:
    matches = match_images(vessels, vessels)
    np.testing.assert_allclose(matches.xy_a, matches.xy_b, atol=1e-3)
    assert len(matches) > 100


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
def test_other_image_types_match(change: object, vessels: np.ndarray) -> None:
    matches = match_images(vessels, change(vessels))  # type: ignore[operator]
    assert len(matches) > 50
    assert np.isfinite(matches.score).all()


def test_nine_tenths_are_within_a_pixel(
    vessels: np.ndarray, warped_vessels: tuple[np.ndarray, np.ndarray]
) -> None:
    warped, truth = warped_vessels
    matches = match_images(vessels, warped, descriptor="akaze")
    error = np.hypot(*(transform_points(truth, matches.xy_a) - matches.xy_b).T)
    assert (error < 1).mean() > 0.9
    raw = match_images(
        vessels,
        warped,
        descriptor="akaze",
        config=MatchConfig(is_refined=False, completion_rounds=0),
    )
    rough = np.hypot(*(transform_points(truth, raw.xy_a) - raw.xy_b).T)
    assert np.median(error) < np.median(rough)
    assert len(matches) > 1.5 * len(raw)


def test_without_completion_the_points_of_a_are_its_key_points(vessels: np.ndarray) -> None:
    expected = np.full(vessels.shape[:2], 255, np.uint8)
    shifted = np.roll(vessels, 5, axis=1)
    config = MatchConfig(completion_rounds=0)
    matches = match_images(
        vessels, shifted, "akaze", mask_a=expected, mask_b=expected, config=config
    )
    view = views.working_view(vessels, mask=expected)
    points = detect_keypoints(view.image, config=DetectorConfig(name="akaze"), mask=view.mask)
    known = {tuple(xy) for xy in view.to_image(points.xy).tolist()}
    assert len(matches) > 100
    assert {tuple(xy) for xy in matches.xy_a.tolist()} <= known


def test_matching_is_deterministic(
    vessels: np.ndarray, warped_vessels: tuple[np.ndarray, np.ndarray]
) -> None:
    first, two = (match_images(vessels, warped_vessels[0]) for _ in range(2))
    for key in ("xy_a", "xy_b", "score"):
        np.testing.assert_array_equal(getattr(first, key), getattr(two, key))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["default", "sift", "graph", "vit"])
def test_matching_features_equals_matching_images(
    name: str, vessels: np.ndarray, warped_vessels: tuple[np.ndarray, np.ndarray]
) -> None:
    mask = np.zeros(vessels.shape[:2], np.uint8)
    mask[30:-30, 40:-50] = 255
    expected = match_images(vessels, warped_vessels[0], name, None, 300, mask_a=mask)
    a = extract(vessels, descriptor=name, max_keypoints=300, mask=mask)
    b = extract(warped_vessels[0], descriptor=load_descriptor(name), max_keypoints=300)
    for _ in range(2):  # features can be reused
        matches = match_features(a, b)
        for key in ("xy_a", "xy_b", "score"):
            np.testing.assert_array_equal(getattr(matches, key), getattr(expected, key))
    assert len(expected) > 50


def test_features_of_two_descriptors_raise_an_error(vessels: np.ndarray) -> None:
    a, b = (extract(vessels, descriptor=name, max_keypoints=50) for name in ("sift", "orb"))
    with pytest.raises(BadInputError, match=r"'sift' .*'orb'"):
        match_features(a, b)
    with pytest.raises(BadInputError, match=r"max_keypoints: .*0"):
        extract(vessels, max_keypoints=0)


def test_matches_of_a_reduced_image_are_in_its_pixels(
    vessels: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    huge = cv2.resize(vessels, None, fx=4, fy=4, interpolation=cv2.INTER_CUBIC)
    monkeypatch.setattr(views, "MAX_WORK_PX", vessels[:, :, 0].size)
    matches = match_images(huge, vessels)
    assert len(matches) > 100
    error = np.hypot(*((matches.xy_a + 0.5) / 4 - 0.5 - matches.xy_b).T)
    assert np.quantile(error, 0.9) < 1.0


def test_common_burnt_in_text_gives_no_matches(vessels: np.ndarray) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (*vessels.shape[:2], 3), np.uint8)
    other = cv2.GaussianBlur(noise, (0, 0), 3)
    pair = [vessels.copy(), other]
    for image in pair:
        cv2.putText(image, "ACME 10:22 14 mmHg", (60, 300), 0, 0.7, (230, 230, 0), 1, cv2.LINE_AA)
    assert len(match_images(*pair, descriptor="sift")) == 0


def test_a_mirrored_image_gives_no_matches(vessels: np.ndarray) -> None:
    assert len(match_images(vessels, np.ascontiguousarray(vessels[:, ::-1]))) == 0


@pytest.mark.parametrize("count", [1, 2, 7])
def test_few_key_points_give_no_matches(count: int, vessels: np.ndarray) -> None:
    matches = match_images(vessels, vessels, max_keypoints=count)
    assert len(matches) == 0


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
        matches = match_images(a, b)
        assert matches.xy_a.shape == matches.xy_b.shape == (len(matches), 2)
        assert np.isfinite(matches.score).all()
        assert a is b or len(matches) == 0


def test_unrelated_images_give_no_matches(vessels: np.ndarray) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (360, 480), np.uint8)
    assert len(match_images(vessels, cv2.GaussianBlur(noise, (0, 0), 2))) == 0


def test_invalid_input_raises_an_error(vessels: np.ndarray) -> None:
    with pytest.raises(UnknownNameError, match="'surf'"):
        match_images(vessels, vessels, descriptor="surf")
    with pytest.raises(BadInputError, match=r"max_keypoints: .*0"):
        match_images(vessels, vessels, max_keypoints=0)
    with pytest.raises(ShapeError):
        match_images(vessels, np.zeros((3, 3), np.uint8))
    with pytest.raises(MlError):
        match_images(vessels, np.zeros(7))


def _dark(image: np.ndarray, *, seed: int) -> np.ndarray:
    """The image in a tenth of its light, with the pattern of a sensor and noise of its own."""
    pattern = np.random.default_rng(0).normal(0, 1, image.shape[:2]).astype(np.float32)
    pattern = cv2.GaussianBlur(pattern, (0, 0), 1)
    noise = np.random.default_rng(seed).normal(0, 0.5, image.shape)
    dark = 0.1 * image + (2.5 / pattern.std() * pattern)[..., None] + noise
    return np.clip(np.rint(dark), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("shift", [(-40, 10), (6, 6)])
def test_the_pattern_of_a_sensor_gives_no_matches_of_dark_moved_tissue(
    shift: tuple[int, int], vessels: np.ndarray
) -> None:
    moved = np.roll(vessels, shift, axis=(0, 1))
    assert len(match_images(_dark(vessels, seed=1), _dark(moved, seed=2))) == 0


def test_dark_tissue_that_is_still_matches_below_the_pattern(vessels: np.ndarray) -> None:
    matches = match_images(_dark(vessels, seed=1), _dark(vessels, seed=2))
    assert len(matches) > 80
    assert np.median(np.hypot(*(matches.xy_a - matches.xy_b).T)) < 0.5

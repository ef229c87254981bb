"""Unusual and invalid images, with all descriptors."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import pytest

from ml.errors import ShapeError
from ml.keypoints import match_images, views
from ml.keypoints.descriptors.registry import DESCRIPTOR_NAMES
from ml.types import Matches

NAMES = [name for name in DESCRIPTOR_NAMES if name != "default"]  # which is one of the others
every_descriptor = pytest.mark.parametrize("name", NAMES)


def crossed(argument: str, cases: dict[str, object]) -> pytest.MarkDecorator:
    """Each case with ORB and the first case with each descriptor; ``make endurance`` takes all."""
    first = next(iter(cases))
    return pytest.mark.parametrize(
        ("name", argument),
        [
            pytest.param(
                *(name, case),
                id=f"{name}-{key}",
                marks=() if name == "orb" or key == first else pytest.mark.endurance,
            )
            for name in NAMES
            for key, case in cases.items()
        ],
    )


HEIGHT, WIDTH = 180, 240


@pytest.fixture(scope="module")
def small(vessels: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(vessels[50 : 50 + HEIGHT, 150 : 150 + WIDTH])


def _matched(a: np.ndarray, b: np.ndarray, name: str, *, count: int = 200) -> Matches:
    """Match two images, and check shapes, bounds and finite values."""
    matches = match_images(a, b, name, max_keypoints=count)
    assert matches.xy_a.shape == matches.xy_b.shape == (len(matches), 2)
    assert len(matches.score) == len(matches) <= count
    assert all(np.isfinite(part).all() for part in (matches.xy_a, matches.xy_b, matches.score))
    for xy, image in ((matches.xy_a, a), (matches.xy_b, b)):
        assert ((xy >= 0) & (xy <= (image.shape[1] - 1, image.shape[0] - 1))).all()
    return matches


def _one_dot(like: np.ndarray) -> np.ndarray:
    image = np.full_like(like, 60)
    cv2.circle(image, (WIDTH // 2, HEIGHT // 2), 4, (200, 200, 200), -1)
    return image


@crossed(
    "empty",
    {"one dot": _one_dot, "black": np.zeros_like, "white": lambda i: np.full_like(i, 255)},
)
def test_a_frame_without_content_gives_no_matches(
    name: str, empty: Callable[[np.ndarray], np.ndarray], small: np.ndarray
) -> None:
    nothing = empty(small)
    assert len(_matched(nothing, small, name)) == 0
    assert len(_matched(small, nothing, name)) == 0
    assert len(_matched(nothing, nothing, name)) == 0


@every_descriptor
def test_a_single_key_point_gives_no_matches(name: str, small: np.ndarray) -> None:
    assert len(_matched(small, small, name, count=1)) == 0


@every_descriptor
def test_an_image_matches_itself_in_place(name: str, small: np.ndarray) -> None:
    matches = _matched(small, small, name)
    assert len(matches) >= 80
    np.testing.assert_allclose(matches.xy_a, matches.xy_b, atol=1e-3)


@crossed(
    "change",
    {
        "grey": lambda i: i[:, :, 1],
        "rgba": lambda i: np.dstack([i, np.full(i.shape[:2], 7, np.uint8)]),
        "16-bit": lambda i: i.astype(np.uint16) * 16,
        "one channel": lambda i: i[:, :, 1:2],
    },
)
def test_another_image_type_matches_in_place(
    name: str, change: Callable[[np.ndarray], np.ndarray], small: np.ndarray
) -> None:
    matches = _matched(small, change(small), name)
    assert len(matches) >= 80
    assert np.median(np.hypot(*(matches.xy_a - matches.xy_b).T)) < 0.25


@pytest.mark.slow
@every_descriptor
def test_images_of_different_sizes_match(name: str, vessels: np.ndarray) -> None:
    part = np.ascontiguousarray(vessels[20:330, 40:470])
    matches = _matched(vessels, part, name, count=400)
    assert len(matches) >= 100
    assert np.median(np.hypot(*(matches.xy_a - (40, 20) - matches.xy_b).T)) < 0.25


@every_descriptor
@pytest.mark.parametrize("shape", [(7,), (8, 200, 3), (60, 60, 2), (0, 0)])
def test_invalid_images_raise_an_error(
    name: str, shape: tuple[int, ...], small: np.ndarray
) -> None:
    for pair in ((np.zeros(shape, np.uint8), small), (small, np.zeros(shape, np.uint8))):
        which = "image_a" if pair[1] is small else "image_b"
        with pytest.raises(ShapeError, match=rf"{which}: expected .*got"):
            match_images(*pair, descriptor=name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["orb", "tessera", "vit"])
def test_matches_of_a_panorama_are_in_its_pixels(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10,000 x 600 px are reduced to what is worked on, before any descriptor sees them."""
    monkeypatch.setattr(views, "MAX_WORK_PX", views.MAX_WORK_PX // 4)
    noise = np.random.default_rng(0).integers(0, 255, (60, 1_000), np.uint8)
    panorama = cv2.resize(noise, (10_000, 600), interpolation=cv2.INTER_CUBIC)
    matches = _matched(panorama, panorama, name, count=300)
    assert len(matches) >= 100
    assert np.ptp(matches.xy_a[:, 0]) > 9_000
    np.testing.assert_allclose(matches.xy_a, matches.xy_b, atol=0.2)

"""What people hand over, with every descriptor: matches, none, or one clear error."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import pytest

from ml.errors import ShapeError
from ml.keypoints import DESCRIPTOR_NAMES, match_images, views
from ml.types import Matches

NAMES = [name for name in DESCRIPTOR_NAMES if name != "default"]  # which is one of the others
every_descriptor = pytest.mark.parametrize("name", NAMES)

HEIGHT, WIDTH = 180, 240


@pytest.fixture(scope="module")
def small(vessels: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(vessels[50 : 50 + HEIGHT, 150 : 150 + WIDTH])


def _matched(a: np.ndarray, b: np.ndarray, name: str, *, count: int = 200) -> Matches:
    """Checked as every answer must be: shapes, bounds, nothing that is not finite."""
    found = match_images(a, b, name, max_keypoints=count)
    assert found.xy_a.shape == found.xy_b.shape == (len(found), 2)
    assert len(found.score) == len(found) <= count
    assert all(np.isfinite(part).all() for part in (found.xy_a, found.xy_b, found.score))
    for xy, image in ((found.xy_a, a), (found.xy_b, b)):
        assert ((xy >= 0) & (xy <= (image.shape[1] - 1, image.shape[0] - 1))).all()
    return found


def _one_dot(like: np.ndarray) -> np.ndarray:
    image = np.full_like(like, 60)
    cv2.circle(image, (WIDTH // 2, HEIGHT // 2), 4, (200, 200, 200), -1)
    return image


@every_descriptor
@pytest.mark.parametrize(
    "empty",
    [np.zeros_like, lambda i: np.full_like(i, 255), _one_dot],
    ids=["black", "white", "one dot"],
)
def test_a_frame_that_shows_nothing_gives_no_match(
    name: str, empty: Callable[[np.ndarray], np.ndarray], small: np.ndarray
) -> None:
    nothing = empty(small)
    assert len(_matched(nothing, small, name)) == 0
    assert len(_matched(small, nothing, name)) == 0
    assert len(_matched(nothing, nothing, name)) == 0


@every_descriptor
def test_one_key_point_is_no_evidence(name: str, small: np.ndarray) -> None:
    assert len(_matched(small, small, name, count=1)) == 0


@every_descriptor
def test_an_image_matches_itself_in_place(name: str, small: np.ndarray) -> None:
    found = _matched(small, small, name)
    assert len(found) >= 80
    np.testing.assert_allclose(found.xy_a, found.xy_b, atol=1e-3)


@every_descriptor
@pytest.mark.parametrize(
    "change",
    [
        lambda i: i[:, :, 1],
        lambda i: np.dstack([i, np.full(i.shape[:2], 7, np.uint8)]),
        lambda i: i.astype(np.uint16) * 16,
        lambda i: i[:, :, 1:2],
    ],
    ids=["grey", "rgba", "16-bit", "one channel"],
)
def test_another_kind_of_the_same_picture_matches_in_place(
    name: str, change: Callable[[np.ndarray], np.ndarray], small: np.ndarray
) -> None:
    found = _matched(small, change(small), name)
    assert len(found) >= 80
    assert np.median(np.hypot(*(found.xy_a - found.xy_b).T)) < 0.25


@every_descriptor
def test_images_of_different_sizes_match_where_they_show_the_same(
    name: str, vessels: np.ndarray
) -> None:
    part = np.ascontiguousarray(vessels[20:330, 40:470])
    found = _matched(vessels, part, name, count=400)
    assert len(found) >= 100
    assert np.median(np.hypot(*(found.xy_a - (40, 20) - found.xy_b).T)) < 0.25


@every_descriptor
@pytest.mark.parametrize("shape", [(7,), (8, 200, 3), (60, 60, 2), (0, 0)])
def test_what_is_no_image_is_one_clear_error(
    name: str, shape: tuple[int, ...], small: np.ndarray
) -> None:
    for pair in ((np.zeros(shape, np.uint8), small), (small, np.zeros(shape, np.uint8))):
        which = "image_a" if pair[1] is small else "image_b"
        with pytest.raises(ShapeError, match=rf"{which}: expected .*got"):
            match_images(*pair, descriptor=name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["orb", "tessera", "vit"])
def test_a_panorama_of_ten_thousand_pixels_is_matched_in_its_own_pixels(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10,000 x 600 px are reduced to what is worked on, before any descriptor sees them."""
    monkeypatch.setattr(views, "MAX_WORK_PX", views.MAX_WORK_PX // 4)
    noise = np.random.default_rng(0).integers(0, 255, (60, 1_000), np.uint8)
    panorama = cv2.resize(noise, (10_000, 600), interpolation=cv2.INTER_CUBIC)
    found = _matched(panorama, panorama, name, count=300)
    assert len(found) >= 100
    assert np.ptp(found.xy_a[:, 0]) > 9_000
    np.testing.assert_allclose(found.xy_a, found.xy_b, atol=0.2)

"""Masks of the field of view and of highlights."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.errors import ShapeError
from ml.keypoints.masks import (
    DARK_LEVEL,
    checked_mask,
    scope_mask,
    specular_mask,
    surround_level,
)


def _disc(radius: int = 80, value: int = 120) -> np.ndarray:
    image = np.zeros((200, 220), np.uint8)
    cv2.circle(image, (110, 100), radius, value, -1)
    return image


def test_the_circle_of_a_scope_is_found() -> None:
    truth = _disc() > 0
    mask = scope_mask(_disc())
    assert (mask ^ truth).sum() < 0.02 * truth.sum()


def test_dark_tissue_inside_is_part_of_the_mask() -> None:
    image = _disc()
    cv2.circle(image, (110, 60), 25, 0, -1)
    assert scope_mask(image)[60, 110]


@pytest.mark.parametrize("value", [120, 30, 10])
def test_the_circle_is_found_at_any_brightness_above_noise(value: int) -> None:
    noise = np.random.default_rng(0).normal(0, 1.5, (200, 220))
    image = np.clip(np.rint(_disc(value=value) + noise), 0, 255).astype(np.uint8)
    truth = _disc() > 0
    mask = scope_mask(image, level=surround_level(image))
    assert (mask ^ truth).sum() < 0.03 * truth.sum()


def test_the_level_of_the_surround_is_lower_in_a_dark_image_only() -> None:
    assert surround_level(_disc(value=200)) == DARK_LEVEL
    assert surround_level(_disc(value=60)) == 6
    assert surround_level(_disc(value=10)) == 4, "above the noise of a black surround"
    assert surround_level(np.full((64, 64), 90, np.uint8)) == DARK_LEVEL


def test_a_margin_erodes_the_mask() -> None:
    inside = scope_mask(_disc(), margin_px=10)
    assert not inside[100, 110 - 75]
    assert inside[100, 110 - 65]


@pytest.mark.parametrize("value", [0, 90])
def test_an_image_without_a_rim_is_all_inside(value: int) -> None:
    assert scope_mask(np.full((64, 64), value, np.uint8), margin_px=5).all()


def test_white_spots_are_highlights_and_bright_tissue_is_not() -> None:
    image = np.full((200, 200, 3), (200, 80, 70), np.uint8)
    cv2.circle(image, (50, 50), 5, (235, 225, 220), -1)
    cv2.rectangle(image, (100, 100), (199, 199), (230, 120, 110), -1)
    mask = specular_mask(image)
    assert mask[50, 50]
    assert not mask[150, 150]
    assert mask.mean() < 0.02


def test_a_white_image_has_no_highlight() -> None:
    assert not specular_mask(np.full((64, 64), 255, np.uint8)).any()


def test_a_mask_of_another_size_raises_an_error() -> None:
    with pytest.raises(ShapeError, match=r"mask: .*\(10, 20\).*\(20, 10\)"):
        checked_mask(np.ones((20, 10), np.uint8), (10, 20))

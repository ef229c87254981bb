"""Proposed modality of an image."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import ShapeError
from ml.imaging.modality import modality_features, propose_modality


def tissue(height: int = 240, width: int = 320) -> np.ndarray:
    """Pink and purple on a bright ground."""
    rng = np.random.default_rng(1)
    image = np.full((height, width, 3), (240, 235, 242), np.uint8)
    stained = rng.random((height, width)) < 0.6
    image[stained] = (200, 120, 190)
    return image


def scope(height: int = 240, width: int = 320, *, red: int = 190) -> np.ndarray:
    """A red disc in a black surround."""
    y, x = np.mgrid[:height, :width]
    inside = np.hypot(y - height / 2, x - width / 2) < height / 2
    image = np.zeros((height, width, 3), np.uint8)
    image[inside] = (red, 90, 70)
    return image


def test_tissue_and_a_view_through_a_scope_are_distinguished() -> None:
    assert propose_modality(tissue()).modality == "histology"
    assert propose_modality(scope()).modality == "endoscopy"
    assert propose_modality(scope()).probability > 0.9


def test_a_red_view_that_fills_the_picture_is_endoscopy() -> None:
    red = np.full((200, 300, 3), (130, 50, 40), np.uint8)
    assert propose_modality(red).modality == "endoscopy"


def test_dark_field_fluorescence_is_histology() -> None:
    dark = np.full((200, 300, 3), (5, 5, 8), np.uint8)
    dark[::7, ::5] = (10, 20, 220)  # fluorescence
    assert propose_modality(dark).modality == "histology"


def test_features_equal_hand_worked_values() -> None:
    image = np.zeros((100, 100, 3), np.uint8)
    image[20:80, 20:80] = (199, 60, 99)
    surround, blue_to_red, brightness = modality_features(image)
    assert surround == 1.0
    assert blue_to_red == pytest.approx(np.log(100 / 200))
    assert brightness == pytest.approx(199 / 255)


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_rotating_the_image_changes_nothing(turn: int) -> None:
    image = scope()
    turned = np.ascontiguousarray(np.rot90(image, turn))
    assert modality_features(turned) == pytest.approx(modality_features(image))


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 700, 3), (1500, 3, 3)])
def test_images_of_any_size_have_a_modality(shape: tuple[int, ...]) -> None:
    assert propose_modality(np.zeros(shape, np.uint8)).modality in ("histology", "endoscopy")


@pytest.mark.parametrize("shape", [(10, 10), (10, 10, 4), (0, 5, 3)])
def test_a_non_rgb_image_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError):
        propose_modality(np.zeros(shape, np.uint8))

"""Tinted glass is not tissue, pale tissue is."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest

from ml.imaging.slides.slide import open_slide
from ml.imaging.tissue.glass import (
    HAZE_REACH_PX,
    glass_colour,
    haze_mask,
    pixel_haze,
    tissue_mask,
)
from ml.roi.explain.colour import colour_histogram
from ml.roi.measures.features import tissue_share
from ml.roi.stain.outline import tissue_outline
from ml.types import ImageU8
from tests.ml.roi.conftest import draw_tissue
from tests.ml.roi.stain.test_outline import _slide

PINK = (0.35, 1.0, 0.5)  # densities of red, green and blue, relative to green


def tinted_glass(od: float, size: tuple[int, int] = (224, 224), *, noise: float = 3.0) -> ImageU8:
    """Glass (H, W, 3) uint8 with a pink tint, uneven illumination and noise."""
    rng = np.random.default_rng(3)
    uneven = 1 + 0.1 * np.linspace(-1, 1, size[1])[None, :, None]
    grey = 246 * 10 ** -(od * uneven * np.array(PINK)) + np.zeros((*size, 3))
    return np.asarray(np.clip(grey + rng.normal(0, noise, grey.shape), 0, 255), np.uint8)


def pale(image: ImageU8, strength: float) -> ImageU8:
    """Image with a share of its optical density."""
    return np.clip(246 * ((image + 1.0) / 246) ** strength - 1, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("od", [0.0, 0.07, 0.1, 0.14, 0.17])
def test_tinted_glass_is_no_tissue(od: float) -> None:
    patch = tinted_glass(od)
    assert tissue_share(patch) < 0.02
    assert colour_histogram([patch]).sum() == 0


@pytest.mark.parametrize("strength", [1.0, 0.7, 0.45])
def test_pale_tissue_is_tissue(strength: float) -> None:
    patch = pale(draw_tissue(224, 224), strength)
    assert tissue_share(patch) > 0.9


def test_a_smooth_area_of_dark_stain_is_tissue() -> None:
    """Mucus and colloid have no structure, but are darker than tinted glass."""
    assert tissue_share(tinted_glass(0.3)) > 0.98


def test_a_gap_in_tissue_is_filled_and_a_wide_one_is_glass() -> None:
    image = np.asarray(draw_tissue(400, 400), np.uint8).copy()
    glass = tinted_glass(0.12, (400, 400))
    image[190:210, 190:210] = glass[190:210, 190:210]
    assert not pixel_haze(image)[170:230, 170:230].any()
    image[100:300, 100:300] = glass[100:300, 100:300]
    haze = pixel_haze(image)
    assert haze[140:260, 140:260].all()
    assert haze[:90].mean() < 0.05 and haze[310:].mean() < 0.05


def test_haze_is_a_property_of_the_surroundings() -> None:
    """Tiles that overlap by ``HAZE_REACH_PX`` agree."""
    image = np.asarray(draw_tissue(640, 640), np.uint8).copy()
    image[:, 240:] = tinted_glass(0.12, (640, 400))
    complete = pixel_haze(image)
    left, right = 320 - HAZE_REACH_PX, 480 + HAZE_REACH_PX
    part = pixel_haze(image[:, left:right])
    assert complete[:, 320:480].any()
    assert (part[:, 320 - left : 480 - left] == complete[:, 320:480]).all()


def test_a_darker_image_has_no_more_haze() -> None:
    density = np.asarray(draw_tissue(224, 224), np.float32) / 2_000
    shares = [
        haze_mask(np.asarray(density * scale, np.float32)).mean() for scale in (0.1, 0.3, 1.0, 3.0)
    ]
    assert shares[0] == 1 and shares[-1] == 0
    assert all(paler >= darker for paler, darker in pairwise(shares))


def test_images_smaller_than_the_window_have_a_mask() -> None:
    assert pixel_haze(np.full((3, 2, 3), 240, np.uint8)).all()
    assert not pixel_haze(np.full((1, 1, 3), 20, np.uint8)).any()


def test_the_outline_of_a_slide_on_tinted_glass_is_that_of_its_tissue(tmp_path: Path) -> None:
    image = tinted_glass(0.12, (400, 600), noise=1)
    image[100:220, 60:300] = cv2.resize(draw_tissue(240, 480), (240, 120))
    with _slide(tmp_path, image) as slide:
        outline = tissue_outline(slide)
    assert np.allclose(outline.bounds, (60, 100, 300, 220), atol=12)


@pytest.mark.parametrize("name", ["D1", "E1"])
def test_the_glass_of_real_sections_is_no_tissue(tessera_data: Path, name: str) -> None:
    """Half of the glass of these scans is pink, as dark as pale stroma."""
    path = tessera_data / "histology" / "sections" / f"5714_HE_BT_{name}.jpg"
    with open_slide(path) as slide:
        thumbnail = slide.thumbnail(1024)
    mask = tissue_mask(thumbnail, glass_colour(thumbnail))
    red = cv2.GaussianBlur(thumbnail[..., 0], (0, 0), 6)
    section = cv2.threshold(red, 0, 255, cv2.THRESH_BINARY_INV + cv2.THRESH_OTSU)[1] > 0
    near = cv2.dilate(section.astype(np.uint8), np.ones((61, 61), np.uint8)) > 0
    assert mask[~near].mean() < 0.02
    core = cv2.erode(section.astype(np.uint8), np.ones((15, 15), np.uint8)) > 0
    assert mask[core].mean() > 0.95

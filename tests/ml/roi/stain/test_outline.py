"""The tissue outline of a slide."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ml.errors import EmptyRegionError
from ml.imaging.slides.slide import SlideImage, open_slide
from ml.roi.stain.outline import tissue_outline
from ml.types import ImageU8


def _slide(tmp_path: Path, pixels: ImageU8) -> SlideImage:
    Image.fromarray(pixels).save(tmp_path / "a.png")
    return open_slide(tmp_path / "a.png")


def test_the_outline_contains_the_stained_part(tmp_path: Path) -> None:
    pixels = np.full((400, 600, 3), 245, np.uint8)
    pixels[100:200, 60:300] = (190, 110, 170)
    with _slide(tmp_path, pixels) as slide:
        outline = tissue_outline(slide)
    assert outline.is_valid
    assert np.allclose(outline.bounds, (60, 100, 300, 200), atol=4)
    assert outline.area == pytest.approx(240 * 100, rel=0.05)


def test_a_slide_without_tissue_raises_an_error(tmp_path: Path) -> None:
    with (
        _slide(tmp_path, np.full((300, 300, 3), 245, np.uint8)) as slide,
        pytest.raises(EmptyRegionError, match="no tissue"),
    ):
        tissue_outline(slide)

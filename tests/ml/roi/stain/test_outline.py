"""Where a slide holds tissue."""

import numpy as np
import pytest
from PIL import Image

from ml.errors import EmptyRegionError
from ml.imaging.slides import open_slide
from ml.roi.stain.outline import tissue_outline


def _slide(tmp_path, pixels):
    Image.fromarray(pixels).save(tmp_path / "a.png")
    return open_slide(tmp_path / "a.png")


def test_the_outline_is_that_of_the_stained_part(tmp_path):
    pixels = np.full((400, 600, 3), 245, np.uint8)
    pixels[100:200, 60:300] = (190, 110, 170)
    with _slide(tmp_path, pixels) as slide:
        found = tissue_outline(slide)
    assert found.is_valid
    assert np.allclose(found.bounds, (60, 100, 300, 200), atol=4)
    assert found.area == pytest.approx(240 * 100, rel=0.05)


def test_bare_glass_has_none(tmp_path):
    with (
        _slide(tmp_path, np.full((300, 300, 3), 245, np.uint8)) as slide,
        pytest.raises(EmptyRegionError, match="no tissue"),
    ):
        tissue_outline(slide)

"""The demo slide: real pixels, microns per pixel, regions that differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ml.imaging.samples.slide import make_sample_slide
from ml.imaging.slides.slide import open_slide


def test_the_slide_is_a_pyramid_with_microns_per_pixel(tmp_path: Path) -> None:
    path = make_sample_slide(tmp_path / "s.tif", size_px=(1_500, 1_200))
    with open_slide(path) as slide:
        info = slide.info
        assert (info.width_px, info.height_px) == (1_500, 1_200)
        assert info.mpp_x == info.mpp_y == pytest.approx(0.5)
        assert all(level.stored for level in info.levels)
        corner = slide.read_region((0, 0), (60, 60), (60, 60))
        tissue = slide.read_region((400, 500), (200, 200), (200, 200))
        other = slide.read_region((700, 500), (200, 200), (200, 200))
    assert corner.min() > 225
    assert tissue.std() > 20
    assert np.abs(tissue.astype(int) - other).mean() > 15


def test_the_same_seed_gives_the_same_slide(tmp_path: Path) -> None:
    a = make_sample_slide(tmp_path / "a.tif", size_px=(400, 300))
    b = make_sample_slide(tmp_path / "b.tif", size_px=(400, 300))
    assert a.read_bytes() == b.read_bytes()

"""Reading, resizing and masking of stills."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ml.errors import BadInputError
from ml.training.common.stills import areas_mask, read_still, resized


def test_a_still_is_read_as_rgb_and_other_files_are_named(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    np.testing.assert_array_equal(read_still(tmp_path / "a.png"), pixels)
    (tmp_path / "b.png").write_bytes(b"none")
    with pytest.raises(BadInputError, match=r"b\.png"):
        read_still(tmp_path / "b.png")


def test_the_longer_side_is_as_requested_and_no_side_vanishes() -> None:
    assert resized(np.zeros((90, 160, 3), np.uint8), long_side_px=80).shape == (45, 80, 3)
    assert resized(np.zeros((90, 45), np.uint8), long_side_px=180).shape == (180, 90)
    sliver = np.zeros((4, 400, 3), np.uint8)
    assert resized(sliver, long_side_px=100, min_px=16).shape == (16, 100, 3)
    flat = resized(np.full((40, 40), 7, np.uint8), long_side_px=13)
    assert (flat == 7).all()


def test_areas_hold_every_pixel_that_they_touch() -> None:
    mask = areas_mask((10, 20), [(0.0, 0.8, 0.25, 1.0)])
    assert mask[8:, :5].all()
    assert mask.sum() == 10
    assert areas_mask((10, 20, 3), [(0.01, 0.01, 0.02, 0.02)]).sum() == 1
    assert not areas_mask((10, 20), []).any()

"""Reducing images."""

from __future__ import annotations

import numpy as np
import pytest

from ml.imaging.resize import reduce_to


def test_each_pixel_is_the_mean_of_those_it_covers() -> None:
    image = np.arange(4 * 8 * 3, dtype=np.uint8).reshape(4, 8, 3)
    expected = np.rint(image.reshape(2, 2, 4, 2, 3).mean(axis=(1, 3)))
    assert np.abs(reduce_to(image, 4).astype(float) - expected).max() <= 1


def test_a_smaller_image_is_returned_unchanged() -> None:
    image = np.zeros((5, 9, 3), np.uint8)
    assert reduce_to(image, 9) is image


@pytest.mark.parametrize(("height", "width"), [(1, 3000), (3000, 1), (2999, 3001)])
def test_sides_have_at_least_one_pixel(height: int, width: int) -> None:
    small = reduce_to(np.zeros((height, width, 3), np.uint8), 100)
    assert max(small.shape[:2]) == 100 and min(small.shape[:2]) >= 1

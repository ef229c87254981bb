"""Validation of points."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import ShapeError
from ml.keypoints import load_descriptor
from ml.keypoints.descriptors.points import inside_image


@pytest.mark.parametrize("name", ["orb", "tessera", "cnn", "vit"])
def test_points_of_another_shape_raise_an_error(name: str, vessels: np.ndarray) -> None:
    descriptor = load_descriptor(name)
    with pytest.raises(ShapeError, match=r"xy: expected \(N, 2\), got \(3,\)"):
        descriptor.describe(vessels, np.zeros(3, np.float32), np.zeros(3, np.float32))
    with pytest.raises(ShapeError, match=r"response: expected \(2,\), got \(3,\)"):
        descriptor.describe(vessels, np.zeros((2, 2), np.float32), np.zeros(3, np.float32))
    with pytest.raises(ShapeError, match="finite"):
        descriptor.describe(vessels, np.full((1, 2), np.nan, np.float32), np.zeros(1))


def test_the_last_pixel_is_inside_and_half_a_pixel_further_is_not() -> None:
    xy = np.array([[0, 0], [9, 4], [9.5, 4], [9, 4.5], [-0.1, 2]], np.float32)
    assert inside_image(xy, (5, 10, 3)).tolist() == [True, True, False, False, False]

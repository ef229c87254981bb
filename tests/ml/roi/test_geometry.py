"""Validation and repair of regions, and their scale."""

from __future__ import annotations

import numpy as np
import pytest
from shapely.geometry import LineString, MultiPolygon, Polygon, box

from ml.errors import BadInputError, EmptyRegionError, InvalidGeometryError
from ml.roi.geometry import checked_region, downsample_for

SIZE = {"width_px": 1000, "height_px": 800}


def scale(mpp, width=4000, height=4000):
    return downsample_for(mpp=mpp, target_mpp=1.0, patch_px=224, width_px=width, height_px=height)


def test_no_polygon_gives_the_image_rectangle():
    assert checked_region(None, **SIZE).bounds == (0, 0, 1000, 800)


def test_a_region_outside_the_image_raises_an_error():
    with pytest.raises(EmptyRegionError, match="1000 x 800 px"):
        checked_region(box(1200, 0, 1300, 100), **SIZE)


def test_a_nan_polygon_raises_an_error():
    with pytest.raises(InvalidGeometryError, match="finite"):
        checked_region(Polygon([(0, 0), (np.nan, 5), (9, 9)]), **SIZE)


def test_a_line_raises_an_error_with_its_type():
    with pytest.raises(InvalidGeometryError, match="got LineString"):
        checked_region(LineString([(0, 0), (5, 5)]), **SIZE)


def test_a_bow_tie_is_repaired():
    bow_tie = Polygon([(0, 0), (100, 100), (100, 0), (0, 100)])
    region = checked_region(bow_tie, **SIZE)
    assert region.is_valid and region.area == pytest.approx(5000)


def test_regions_are_clipped_to_the_image():
    region = checked_region(MultiPolygon([box(-50, 0, 50, 10), box(990, 0, 1200, 10)]), **SIZE)
    assert region.area == pytest.approx(50 * 10 + 10 * 10)


def test_known_microns_per_pixel_set_the_scale():
    assert scale(0.25) == pytest.approx(4.0)
    assert scale(1.0) == pytest.approx(1.0)
    assert scale(8.0) == pytest.approx(0.5)  # magnified at most twice


def test_an_unknown_scale_is_20x_unless_the_image_is_smaller_than_a_patch():
    assert scale(None) == 2.0
    assert scale(None, 775, 522) == 2.0
    assert scale(None, 224, 224) == 1.0


def test_a_negative_mpp_raises_an_error():
    with pytest.raises(BadInputError, match="got -1"):
        scale(-1)

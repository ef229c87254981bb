"""Regions that cannot be embedded say why; those that can be repaired are."""

from __future__ import annotations

import numpy as np
import pytest
from shapely.geometry import LineString, MultiPolygon, Polygon, box

from ml.errors import BadInputError, EmptyRegionError, InvalidGeometryError
from ml.roi.geometry import checked_region, downsample_for

SIZE = {"width_px": 1000, "height_px": 800}


def scale(mpp, width=4000, height=4000):
    return downsample_for(mpp=mpp, target_mpp=1.0, patch_px=224, width_px=width, height_px=height)


def test_no_polygon_is_the_whole_image():
    assert checked_region(None, **SIZE).bounds == (0, 0, 1000, 800)


def test_a_region_outside_the_image_is_refused():
    with pytest.raises(EmptyRegionError, match="outside the image of 1000 x 800 px"):
        checked_region(box(1200, 0, 1300, 100), **SIZE)


def test_a_nan_polygon_is_refused():
    with pytest.raises(InvalidGeometryError, match="not a finite number"):
        checked_region(Polygon([(0, 0), (np.nan, 5), (9, 9)]), **SIZE)


def test_a_line_is_refused_by_its_kind():
    with pytest.raises(InvalidGeometryError, match="got LineString"):
        checked_region(LineString([(0, 0), (5, 5)]), **SIZE)


def test_a_bow_tie_is_repaired_and_keeps_both_wings():
    bow_tie = Polygon([(0, 0), (100, 100), (100, 0), (0, 100)])
    region = checked_region(bow_tie, **SIZE)
    assert region.is_valid and region.area == pytest.approx(5000)


def test_what_hangs_over_the_edge_is_cut_off():
    region = checked_region(MultiPolygon([box(-50, 0, 50, 10), box(990, 0, 1200, 10)]), **SIZE)
    assert region.area == pytest.approx(50 * 10 + 10 * 10)


def test_known_microns_per_pixel_set_the_scale():
    assert scale(0.25) == pytest.approx(4.0)
    assert scale(1.0) == pytest.approx(1.0)
    assert scale(8.0) == pytest.approx(0.5)  # never enlarged more than twice


def test_an_unknown_scale_is_20x_unless_the_image_holds_no_patch_then():
    assert scale(None) == 2.0
    assert scale(None, 775, 522) == 2.0
    assert scale(None, 224, 224) == 1.0


def test_a_negative_mpp_is_refused():
    with pytest.raises(BadInputError, match="expected a positive number of microns, got -1"):
        scale(-1)

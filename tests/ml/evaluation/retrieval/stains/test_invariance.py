"""Invariance to changes, on an encoder whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from shapely.geometry import box

from ml.errors import BadInputError
from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.regions import region_image
from ml.evaluation.retrieval.stains.invariance import CHANGES, augmentation_invariance


def test_flips_and_turns_leave_a_mean_as_it_is(records, mean_grey):
    found = augmentation_invariance(mean_grey, records)
    assert set(found) == set(CHANGES)
    for name in ("flip", "turn"):
        assert found[name]["recall_at_1"] == 1
        assert found[name]["distance_ratio"] == pytest.approx(0, abs=1e-3)
    assert found["stain"]["distance_ratio"] > found["flip"]["distance_ratio"]


def test_changes_move_the_polygon_with_the_pixels(tmp_path):
    image = np.full((300, 400, 3), 230, np.uint8)
    image[100:150, 200:280] = 60
    Image.fromarray(image).save(tmp_path / "x.png")
    record = RoiRecord(tmp_path / "x.png", "P", "x", None, box(200, 100, 280, 150))
    for name in ("flip", "turn"):
        new = CHANGES[name](region_image(record), np.random.default_rng(0))
        left, top, right, bottom = (round(v) for v in new.polygon.bounds)
        assert (new.pixels[top:bottom, left:right] == 60).all(), name
        assert (new.pixels == 60).all(axis=2).sum() == 80 * 50


def test_one_region_is_not_enough(records, mean_grey):
    with pytest.raises(BadInputError, match="expected two regions or more"):
        augmentation_invariance(mean_grey, records[:1])

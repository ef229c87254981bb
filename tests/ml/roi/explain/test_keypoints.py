"""Key points of two views of one place."""

from __future__ import annotations

import numpy as np
import pytest
from shapely.geometry import box

from ml.roi import load_encoder
from ml.roi.explain import PlacedRegion, match_regions


def test_key_points_of_one_place_are_matched_where_they_lie(mucosa):
    encoder = load_encoder("endoscopy")
    image = mucosa(480, 560, seed=5)
    moved = np.roll(image, 40, axis=1)
    found = match_regions(
        encoder,
        PlacedRegion(image, box(140, 120, 340, 320)),
        PlacedRegion(moved, box(180, 120, 380, 320)),
    )
    assert len(found.score) >= 8
    assert min(found.found_a, found.found_b) >= len(found.score)
    assert found.xy_b - found.xy_a == pytest.approx(
        np.tile([40.0, 0.0], (len(found.score), 1)), abs=3
    )
    assert list(found.score) == sorted(found.score, reverse=True)

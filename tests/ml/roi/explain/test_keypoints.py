"""Matches of key points between two regions."""

from __future__ import annotations

import numpy as np
import pytest
from shapely.geometry import box

from ml.roi import load_encoder
from ml.roi.explain.keypoints import MIN_FOUND, ZOOMS, match_regions
from ml.roi.explain.regions import PlacedRegion


def test_key_points_of_the_same_place_are_matched_at_their_positions(mucosa):
    encoder = load_encoder("endoscopy")
    image = mucosa(480, 560, seed=5)
    moved = np.roll(image, 40, axis=1)
    matches = match_regions(
        encoder,
        PlacedRegion(image, box(140, 120, 340, 320)),
        PlacedRegion(moved, box(180, 120, 380, 320)),
    )
    assert len(matches.score) >= 8
    assert min(matches.found_a, matches.found_b) >= len(matches.score)
    assert matches.xy_b - matches.xy_a == pytest.approx(
        np.tile([40.0, 0.0], (len(matches.score), 1)), abs=3
    )
    assert list(matches.score) == sorted(matches.score, reverse=True)


def test_a_region_inside_a_larger_one_is_matched_at_other_magnifications(mucosa):
    encoder = load_encoder("endoscopy")
    image = mucosa(480, 560, seed=5)
    region = box(140, 120, 340, 320)
    for other in (box(20, 20, 540, 460), box(240, 220, 340, 320)):
        view = match_regions(encoder, *(PlacedRegion(image, item) for item in (region, other)))
        assert len(view.score) >= MIN_FOUND and view.views > 1
        assert view.xy_b == pytest.approx(view.xy_a, abs=3)


def test_a_rotated_region_is_matched_without_other_magnifications(mucosa):
    image = mucosa(480, 560, seed=5)
    turned = np.ascontiguousarray(np.rot90(image))
    matches = match_regions(
        load_encoder("endoscopy"),
        PlacedRegion(image, box(140, 120, 340, 320)),
        PlacedRegion(turned, box(120, 220, 320, 420)),
    )
    assert matches.views == 1 and len(matches.score) >= MIN_FOUND
    back = np.stack([560 - 1 - matches.xy_b[:, 1], matches.xy_b[:, 0]], axis=1)
    assert back == pytest.approx(matches.xy_a, abs=3)


def test_other_tissue_has_no_matches_at_any_magnification(mucosa):
    steps = []
    matches = match_regions(
        load_encoder("endoscopy"),
        *(PlacedRegion(mucosa(480, 560, seed=n), box(140, 120, 340, 320)) for n in (5, 6)),
        progress=lambda *step: steps.append(step),
    )
    assert not len(matches.score) and matches.views == 1 + len(ZOOMS) == 1 + len(steps)
    assert min(matches.found_a, matches.found_b) > 0

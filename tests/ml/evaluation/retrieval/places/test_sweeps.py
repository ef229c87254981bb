"""Simulated sweeps: outlines show the same tissue in both visits."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.evaluation.retrieval.places.sweeps import StillSweepConfig, kinds_scene, sweep_scene

SMALL = StillSweepConfig(size_px=200, frames=6, step=1, side_px=60.0, spacing_px=40.0)
MARK = (245, 190)


@pytest.fixture(scope="module")
def marked(still):
    marked = still.copy()
    cv2.circle(marked, MARK, 9, (0, 20, 255), -1)
    return marked


@pytest.fixture(scope="module")
def scene(marked):
    return sweep_scene(marked, "op", SMALL, seed=3)


def marker(frame):
    """(2,) middle of the blue disc, or None where it is not whole in view."""
    red, _, blue = (frame[..., c].astype(int) for c in range(3))
    y, x = np.nonzero(blue - red > 60)
    if len(x) < 120 or np.ptp(x) > 40 or np.ptp(y) > 40:
        return None
    return np.array([x.mean(), y.mean()])


def share_of(outline, point):
    """Position of a point of the frame in a place, whose corners are at 0 and 1."""
    unit = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
    matrix = cv2.getPerspectiveTransform(outline.astype(np.float32), unit)
    return cv2.perspectiveTransform(np.asarray(point, np.float64)[None, None], matrix)[0, 0]


def test_a_marker_has_the_same_relative_position_in_both_visits(scene):
    seen = [marker(frame) for frame in scene.frames]
    places = {}
    for region in scene.regions:
        if seen[region.frame] is not None:
            at = share_of(region.outline, seen[region.frame])
            places.setdefault(region.place, []).append((scene.visits[region.frame], at))
    held = 0
    for place in places.values():
        at = np.array([share for _, share in place])
        # The tissue itself moves by some px, of a place of 60.
        assert np.abs(at - np.median(at, axis=0)).max() < 0.3
        if (np.abs(np.median(at, axis=0) - 0.5) < 0.3).all():
            assert ((at > 0) & (at < 1)).all()
            held += {visit for visit, _ in place} == {0, 1}
    assert held >= 1


def test_a_marker_has_the_same_relative_position_in_still_frames_and_mosaic(marked):
    scene = kinds_scene(marked, "op", SMALL, seed=3)
    assert set(scene.visits) == {0, 1, 2} and scene.truth == "kinds"
    assert all(frame.shape == (200, 200, 3) for frame in scene.frames)
    places = {}
    for region in scene.regions:
        at = marker(scene.frames[region.frame])
        if at is not None:
            kinds = places.setdefault(region.place, {})
            kinds[scene.visits[region.frame]] = share_of(region.outline, at)
    complete = [np.array(list(kinds.values())) for kinds in places.values() if len(kinds) == 3]
    assert complete
    for at in complete:
        assert np.abs(at - np.median(at, axis=0)).max() < 0.3


def test_kinds_are_searched_only_among_each_other(marked):
    scene = kinds_scene(marked, "op", SMALL, seed=3)
    for index, region in enumerate(scene.regions):
        assert not scene.gallery(index, "near").size
        visits = {scene.visits[scene.regions[i].frame] for i in scene.gallery(index, "far")}
        assert visits == {0, 1, 2} - {scene.visits[region.frame]}


def test_every_place_is_visible_in_both_visits(scene):
    assert scene.visits == (0,) * 6 + (1,) * 6 and len(scene.frames) == 12
    assert (scene.truth, scene.near_gap, scene.far_gap) == ("sweep", 3, 12)
    counts = np.bincount([region.place for region in scene.regions])
    assert len(counts) > 5 and (counts >= 2).all()


def test_outlines_are_in_the_view_of_the_scope(scene):
    corners = np.concatenate([region.outline for region in scene.regions])
    assert np.hypot(*(corners - 100).T).max() < 96
    for frame in scene.frames:
        assert frame.shape == (200, 200, 3) and frame.dtype == np.uint8
        assert frame[:10, :10].max() == 0


def test_only_every_second_frame_is_searched(still):
    scene = sweep_scene(still, "op", StillSweepConfig(size_px=160, frames=4, step=2), seed=0)
    assert {region.frame for region in scene.regions} <= {0, 2, 4, 6}


def test_sweeps_are_deterministic_for_a_seed(still):
    config = StillSweepConfig(size_px=120, frames=3, side_px=40.0)
    first, again, other = (sweep_scene(still, "op", config, seed=seed) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(first.frames, again.frames, strict=True))
    assert not np.array_equal(first.frames[0], other.frames[0])

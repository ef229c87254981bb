"""Scenes: near and far regions, and the mask."""

from __future__ import annotations

import numpy as np

from ml.evaluation.retrieval.places.scenes import PlaceRegion, Scene, sees, square


def scene(frames, visits, near_gap=2, far_gap=6):
    outline = square(np.array([5.0, 5.0]), 4)
    return Scene(
        name="scene",
        truth="sweep",
        frames=(),
        mask=np.ones((10, 10), np.bool_),
        regions=tuple(PlaceRegion(frame, 0, outline) for frame in frames),
        visits=visits,
        near_gap=near_gap,
        far_gap=far_gap,
    )


def test_near_frames_exclude_the_same_moment_and_distant_ones():
    made = scene([0, 1, 2, 5, 6, 9], (0,) * 10)
    assert made.gallery(0, "near").tolist() == [2, 3]
    assert made.gallery(0, "far").tolist() == [4, 5]
    assert made.gallery(3, "near").tolist() == [0, 1, 2, 5]
    assert made.gallery(3, "far").tolist() == []


def test_frames_of_another_visit_are_far_at_any_gap():
    made = scene([3, 4, 5, 6, 7], (0, 0, 0, 0, 0, 1, 1, 1), near_gap=1, far_gap=99)
    assert made.gallery(1, "near").tolist() == [0]
    assert made.gallery(1, "far").tolist() == [2, 3, 4]
    assert made.gallery(3, "near").tolist() == [2, 4]


def test_a_region_is_never_in_its_gallery():
    made = scene([0, 3, 9], (0,) * 10)
    for query in range(3):
        assert query not in [*made.gallery(query, "near"), *made.gallery(query, "far")]


def test_a_square_has_the_requested_centre_and_side():
    corners = square(np.array([10.0, 20.0]), 6)
    assert corners.tolist() == [[7, 17], [13, 17], [13, 23], [7, 23]]
    region = PlaceRegion(0, 0, corners + 0.04)
    assert region.polygon.bounds == (7, 17, 13, 23)


def test_an_outline_is_visible_if_all_its_corners_are():
    mask = np.zeros((10, 20), np.bool_)
    mask[2:8, 3:15] = True
    assert sees(np.array([[3.0, 2.0], [14.9, 7.9]]), mask)
    assert not sees(np.array([[3.0, 2.0], [15.0, 7.9]]), mask)
    for outside in ([-0.1, 5.0], [5.0, -0.1], [20.0, 5.0], [5.0, 10.0]):
        assert not sees(np.array([outside]), np.ones((10, 20), np.bool_))

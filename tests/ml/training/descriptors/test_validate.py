"""The quick look at a descriptor counts right, exact and far neighbours as it says."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from ml.keypoints.pixels import equalise
from ml.training.descriptors.validate import FAMILIES, _scores, best_threshold, validate
from ml.training.descriptors.views import KeypointStill
from ml.types import Keypoints


class _Places:
    """A descriptor that says where a point is, and no more."""

    name, dim, detector, ratio = "places", 2, "sift", 1.0

    def describe(self, image, xy, response):
        return np.asarray(xy, np.float32) + 1

    def describe_keypoints(self, image, keypoints):
        return self.describe(image, keypoints.xy, keypoints.response)


def _still() -> KeypointStill:
    noise = np.random.default_rng(0).integers(60, 255, (300, 400), dtype=np.uint8)
    grey = np.asarray(cv2.GaussianBlur(noise, (0, 0), 1.5))
    x, y = np.meshgrid(np.arange(40, 380, 40), np.arange(40, 280, 40))
    xy = np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32)
    return KeypointStill("a", grey, equalise(grey), points(xy))


def points(xy: np.ndarray) -> Keypoints:
    n = len(xy)
    return Keypoints(
        np.asarray(xy, np.float32), *(np.full(n, value, np.float32) for value in (1, 12, 90))
    )


def test_neighbours_are_counted_by_hand():
    # distance, right, exact, far
    rows = np.array([[0.1, 1, 1, 0], [0.2, 1, 0, 0], [0.3, 0, 0, 1], [0.6, 0, 0, 0]])
    found = _scores(rows, threshold=0.5)
    assert (found["precision"], found["exact"], found["far_wrong"]) == (0.5, 0.25, 0.5)
    assert found["nnt_precision"] == pytest.approx(2 / 3, abs=1e-4)
    assert found["nnt_score"] == 0.5
    assert _scores(rows[:2], threshold=0.5)["far_wrong"] == 0


def test_the_threshold_is_that_of_the_best_f1():
    distance = np.array([0.3, 0.1, 0.2, 0.4])
    # kept 1, 2, 3, 4 in order of distance: F1 2/5, 4/6, 4/7, 4/8
    found = best_threshold(distance, np.array([False, True, True, False]))
    assert 0.2 < found < 0.3
    assert best_threshold(np.zeros(0), np.zeros(0, bool)) == 0


def test_places_alone_are_right_where_nothing_moves_and_wrong_nearby_where_it_does():
    found = validate(_Places(), [_still()])
    assert set(found) == {*FAMILIES, "all"}
    assert found["blur"]["precision"] == found["blur"]["exact"] == 1
    assert found["translation"]["precision"] == 1  # 10 px on a grid of 40
    assert found["rotation"]["precision"] < 1
    assert found["rotation"]["far_wrong"] < 0.5


class _Carried(_Places):
    """Says how large and how turned it was told that a point is, and no more."""

    def describe_keypoints(self, image, keypoints):
        turned = np.radians(keypoints.angle_deg)
        rows = np.stack([keypoints.size_px, np.cos(turned), np.sin(turned)], axis=1)
        return np.asarray(rows, np.float32)


def test_size_and_angle_are_carried_as_the_view_makes_them():
    still = _still()
    sizes = np.linspace(8, 40, len(still.keypoints)).astype(np.float32)
    still = replace(still, keypoints=replace(still.keypoints, size_px=sizes))
    found = validate(_Carried(), [still], carried=True)
    # nothing but a scale changes the sizes, by which alone they can be told apart
    assert found["translation"]["exact"] == found["rotation"]["exact"] == 1
    assert found["scale"]["exact"] < 1

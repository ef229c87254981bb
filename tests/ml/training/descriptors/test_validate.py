"""Scores of a descriptor at the end of its training."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.keypoints.pixels import equalise
from ml.training.descriptors.validate import FAMILIES, _scores, best_threshold, validate
from ml.training.descriptors.views import KeypointStill
from ml.types import Keypoints


class _Coordinates:
    """A descriptor whose vectors are the coordinates."""

    name, dim, detector, ratio = "coordinates", 2, "sift", 1.0

    def describe(self, image, xy, response):
        return np.asarray(xy, np.float32) + 1


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


def test_neighbour_counts_equal_hand_worked_values():
    rows = np.array([[0.1, 1], [0.2, 1], [0.3, 0], [0.6, 0]])  # distance, right
    scores = _scores(rows, threshold=0.5)
    assert scores["precision"] == 0.5
    assert scores["nnt_precision"] == pytest.approx(2 / 3, abs=1e-4)
    assert scores["nnt_score"] == 0.5


def test_the_threshold_maximises_f1():
    distance = np.array([0.3, 0.1, 0.2, 0.4])
    # kept 1, 2, 3, 4 in order of distance: F1 2/5, 4/6, 4/7, 4/8
    threshold = best_threshold(distance, np.array([False, True, True, False]))
    assert 0.2 < threshold < 0.3
    assert best_threshold(np.zeros(0), np.zeros(0, bool)) == 0


def test_coordinates_match_only_without_motion():
    scores = validate(_Coordinates(), [_still()])
    assert set(scores) == {*FAMILIES, "all"}
    assert scores["blur"]["precision"] == 1
    assert scores["translation"]["precision"] == 1  # 10 px on a grid of 40
    assert scores["rotation"]["precision"] < 1

"""Hand-crafted descriptors in their best form: size and angle go along with the transform."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.evaluation.matching.pairs import WarpedPair
from ml.evaluation.matching.papers import PointCache, carried_pair, papers_pair, projected
from ml.geometry import transform_points
from ml.keypoints.descriptors.classical import CLASSICAL_NAMES, ClassicalDescriptor
from ml.types import Keypoints


def keypoints(xy, size, angle):
    xy = np.array(xy, np.float32)
    count = len(xy)
    ones = np.ones(count, np.float32)
    return Keypoints(xy, ones, size * ones, np.full(count, angle, np.float32))


def similarity(scale, degrees, shift=(0, 0)):
    c, s = scale * np.cos(np.radians(degrees)), scale * np.sin(np.radians(degrees))
    return np.array([[c, -s, shift[0]], [s, c, shift[1]], [0, 0, 1.0]])


def test_a_similarity_scales_and_turns_every_point_alike():
    H = similarity(2.0, 30, (5, 7))
    points = keypoints([[10, 20], [300, 4]], 12, 350)
    found = projected(points, H, transform_points(H, points.xy))
    assert found.size_px == pytest.approx([24, 24], rel=1e-5)
    assert found.angle_deg == pytest.approx([20, 20], abs=1e-3)


def test_a_homography_is_followed_by_what_becomes_of_a_small_step():
    H = np.array([[1.1, 0.2, 3], [-0.1, 0.9, 8], [4e-4, -3e-4, 1]])
    points = keypoints([[50, 80], [200, 30]], 10, 40)
    found = projected(points, H, transform_points(H, points.xy))
    step = 0.05 * np.array([np.cos(np.radians(40)), np.sin(np.radians(40))])
    there = transform_points(H, points.xy + step) - transform_points(H, points.xy - step)
    angle = np.degrees(np.arctan2(there[:, 1], there[:, 0])) % 360
    assert found.angle_deg == pytest.approx(angle, abs=0.2)
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * 0.5
    for xy, size in zip(points.xy, found.size_px, strict=True):
        area = cv2.contourArea(transform_points(H, xy + corners).astype(np.float32))
        assert size / 10 == pytest.approx(np.sqrt(area), rel=0.01)


def test_an_unknown_angle_stays_unknown():
    points = keypoints([[10, 20]], 12, -1)
    assert projected(points, similarity(1, 90), points.xy).angle_deg.tolist() == [-1]


@pytest.mark.parametrize("name", CLASSICAL_NAMES)
def test_turned_and_enlarged_points_are_found_again_in_the_best_form(name):
    rng = np.random.default_rng(3)
    grey = cv2.GaussianBlur(rng.integers(0, 255, (240, 320), dtype=np.uint8), (0, 0), 2.5)
    grey = cv2.normalize(grey, None, 0, 255, cv2.NORM_MINMAX)
    image = cv2.cvtColor(grey, cv2.COLOR_GRAY2RGB)
    H = similarity(1.6, 35, (60, -60))
    turned = cv2.warpPerspective(image, H, (320, 240), borderMode=cv2.BORDER_REFLECT)
    pair = WarpedPair("scale", 1.6, "noise", image, turned, H, None, None)
    descriptor, cache = ClassicalDescriptor(name), PointCache()
    best = carried_pair(descriptor, pair, keypoints=150, cache=cache)
    plain = papers_pair(descriptor, pair, detector=name, keypoints=150, cache=cache)
    assert best.is_right.mean() > max(0.65, plain.is_right.mean())

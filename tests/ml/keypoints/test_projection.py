"""Projection of key points to another view."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.geometry import transform_points
from ml.keypoints.projection import project_keypoints
from ml.types import Keypoints


def keypoints(xy, size, angle):
    xy = np.array(xy, np.float32)
    count = len(xy)
    ones = np.ones(count, np.float32)
    return Keypoints(xy, ones, size * ones, np.full(count, angle, np.float32))


def similarity(scale, degrees, shift=(0, 0)):
    c, s = scale * np.cos(np.radians(degrees)), scale * np.sin(np.radians(degrees))
    return np.array([[c, -s, shift[0]], [s, c, shift[1]], [0, 0, 1.0]])


def test_a_similarity_scales_and_rotates_all_points_equally():
    H = similarity(2.0, 30, (5, 7))
    points = keypoints([[10, 20], [300, 4]], 12, 350)
    projected = project_keypoints(points, H, transform_points(H, points.xy))
    assert projected.size_px == pytest.approx([24, 24], rel=1e-5)
    assert projected.angle_deg == pytest.approx([20, 20], abs=1e-3)


def test_a_homography_transforms_size_and_angle_like_small_steps():
    H = np.array([[1.1, 0.2, 3], [-0.1, 0.9, 8], [4e-4, -3e-4, 1]])
    points = keypoints([[50, 80], [200, 30]], 10, 40)
    projected = project_keypoints(points, H, transform_points(H, points.xy))
    step = 0.05 * np.array([np.cos(np.radians(40)), np.sin(np.radians(40))])
    there = transform_points(H, points.xy + step) - transform_points(H, points.xy - step)
    angle = np.degrees(np.arctan2(there[:, 1], there[:, 0])) % 360
    assert projected.angle_deg == pytest.approx(angle, abs=0.2)
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * 0.5
    for xy, size in zip(points.xy, projected.size_px, strict=True):
        area = cv2.contourArea(transform_points(H, xy + corners).astype(np.float32))
        assert size / 10 == pytest.approx(np.sqrt(area), rel=0.01)


def test_an_unknown_angle_stays_unknown():
    points = keypoints([[10, 20]], 12, -1)
    assert project_keypoints(points, similarity(1, 90), points.xy).angle_deg.tolist() == [-1]

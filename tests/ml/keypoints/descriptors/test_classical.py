"""Hand-crafted descriptors at given points."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.geometry import transform_points
from ml.keypoints import load_descriptor
from ml.keypoints.descriptors.classical import CLASSICAL_NAMES
from ml.keypoints.detect import DetectorConfig, detect_keypoints
from ml.keypoints.match import match_descriptors
from ml.keypoints.pixels import equalise, to_grey
from ml.types import Keypoints


@pytest.mark.parametrize("name", [*CLASSICAL_NAMES, "default"])
def test_rows_are_finite_up_to_the_border(name: str, vessels: np.ndarray) -> None:
    descriptor = load_descriptor(name)
    xy = np.array([[0, 0], [479, 359], [240, 180], [-5, 10], [100.5, 0.25]], np.float32)
    rows = descriptor.describe(vessels, xy, np.ones(5, np.float32))
    assert rows.shape == (5, descriptor.dim)
    assert rows.dtype == np.float32
    assert np.isfinite(rows).all()
    assert not rows[3].any(), "a point outside the image has no descriptor"
    assert rows[[0, 1, 2, 4]].any(axis=1).all()


@pytest.mark.parametrize("name", CLASSICAL_NAMES)
def test_the_order_of_points_does_not_change_their_rows(name: str, vessels: np.ndarray) -> None:
    points = detect_keypoints(vessels, config=DetectorConfig(name=name, max_keypoints=60))
    descriptor = load_descriptor(name)
    rows = descriptor.describe(vessels, points.xy, points.response)
    turned = descriptor.describe(vessels, points.xy[::-1].copy(), points.response[::-1].copy())
    np.testing.assert_allclose(rows, turned[::-1], atol=1e-5)


@pytest.mark.parametrize("name", ["sift", "akaze"])
def test_rows_away_from_the_border_equal_those_of_opencv(name: str, vessels: np.ndarray) -> None:
    feature = cv2.SIFT.create() if name == "sift" else cv2.AKAZE.create()
    raw, values = feature.detectAndCompute(equalise(to_grey(vessels)), None)
    column = {k: np.array([getattr(p, k) for p in raw], np.float32) for k in ("response", "size")}
    angle = np.array([p.angle for p in raw], np.float32) % 360
    xy = np.array([p.pt for p in raw], np.float32)
    ours = load_descriptor(name).describe_keypoints(
        vessels, Keypoints(xy, column["response"], column["size"], angle)
    )
    if name == "sift":
        root = np.sqrt(values / values.sum(axis=1, keepdims=True))
        theirs = root / np.linalg.norm(root, axis=1, keepdims=True)
    else:
        theirs = np.unpackbits(values, axis=1) / np.sqrt(488)
    reach = 6 * column["size"][:, None]
    inner = ((xy > reach) & (xy < np.array([479, 359]) - reach)).all(axis=1)
    assert inner.sum() > 8
    assert (np.linalg.norm(ours - theirs, axis=1)[inner] < 0.1).mean() >= 0.8


def test_rows_of_gradients_have_unit_length_and_bits_a_scaled_distance(vessels: np.ndarray) -> None:
    points = detect_keypoints(vessels, config=DetectorConfig(max_keypoints=40))
    for name in ("sift", "kaze"):
        rows = load_descriptor(name).describe(vessels, points.xy, points.response)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    for name in ("orb", "akaze"):
        rows = load_descriptor(name).describe(vessels, points.xy, points.response)
        share = (rows[0] != rows[1]).mean()
        assert ((rows[0] - rows[1]) ** 2).sum() == pytest.approx(share, rel=1e-5)


@pytest.mark.parametrize("name", CLASSICAL_NAMES)
def test_a_rotated_image_has_the_same_matches(name: str, vessels: np.ndarray) -> None:
    points = detect_keypoints(vessels, config=DetectorConfig(max_keypoints=200))
    inner = ((points.xy > 60) & (points.xy < (420, 300))).all(axis=1)
    xy, response = points.xy[inner], points.response[inner]
    turn = np.vstack([cv2.getRotationMatrix2D((240, 180), 40, 1.0), [0, 0, 1]])
    turned = np.asarray(cv2.warpPerspective(vessels, turn, (480, 360)))
    partner = transform_points(turn, xy).astype(np.float32)
    descriptor = load_descriptor(name)
    pairs, _ = match_descriptors(
        descriptor.describe(vessels, xy, response),
        descriptor.describe(turned, partner, response),
        strategy="nn",
    )
    error = np.hypot(*(partner[pairs[:, 1]] - partner[pairs[:, 0]]).T)
    assert (error < 5).mean() > 0.7


def test_no_points_give_no_rows(vessels: np.ndarray) -> None:
    rows = load_descriptor("kaze").describe(vessels, np.zeros((0, 2), np.float32), np.zeros(0))
    assert rows.shape == (0, 64)


def test_a_flat_image_gives_finite_rows() -> None:
    flat = np.full((64, 64), 90, np.uint8)
    xy = np.array([[32, 32]], np.float32)
    for name in CLASSICAL_NAMES:
        assert np.isfinite(load_descriptor(name).describe(flat, xy, np.ones(1))).all()

"""Layers by hand; lens correction; place recognition; the growing preview."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import tifffile

from ml.errors import BadInputError
from ml.mosaic.canvas import Canvas, PlacedFrame
from ml.mosaic.layers import scaled, write_layers
from ml.mosaic.place_recognition import place_candidates
from ml.mosaic.sources import ArraySource
from ml.mosaic.undistort import CorrectedSource

VIEW = np.array([[0, 0], [39, 0], [39, 19], [0, 19.0]])


def _placed(index: int, shift: float, sigma: float) -> PlacedFrame:
    matrix = np.array([[1, 0, shift], [0, 1, 0], [0, 0, 1.0]])
    return PlacedFrame(index, index, index * 0.5, matrix, sigma)


def test_layers_of_two_overlapping_frames(tmp_path: Path) -> None:
    canvas = Canvas(60, 20, {}, {})
    placed = (_placed(2, 0, 0.4), _placed(6, 20, 0.1))
    layers = write_layers(canvas, placed, VIEW, tmp_path, component=1, layer_px=2048)
    by_name = {layer.name: layer for layer in layers}
    assert by_name["count"].png == "layer-count-2.png"
    assert (by_name["time"].minimum, by_name["time"].maximum, by_name["time"].unit) == (1, 3, "s")
    count = cv2.imread(str(tmp_path / "layer-count-2.png"), cv2.IMREAD_UNCHANGED)
    assert (count[10, 5], count[10, 30], count[10, 55]) == (1, 255, 1)
    sigma = tifffile.imread(tmp_path / "layer-uncertainty-2.tif")
    assert sigma.dtype == np.uint16
    assert (sigma[10, 5], sigma[10, 30]) == (65535, 1), "the best-known frame counts"
    coverage = cv2.imread(str(tmp_path / "layer-coverage-2.png"), cv2.IMREAD_UNCHANGED)
    assert coverage.min() == 255


def test_nothing_seen_is_zero_and_one_value_is_the_largest() -> None:
    seen = np.array([True, False, True])
    values = np.array([2.0, 9.0, 4.0], np.float32)
    np.testing.assert_array_equal(scaled(values, seen, 2, 4, 254), [1, 0, 255])
    np.testing.assert_array_equal(scaled(values, seen, 3, 3, 254), [255, 0, 255])


def test_a_straight_line_is_straight_again_after_correction() -> None:
    lens = (80.0, 80.0, 60.0, 60.0, -0.25, 0.05, 0.0, 0.0)
    straight = np.zeros((121, 121, 3), np.uint8)
    straight[20:24] = 255
    matrix = np.array([[80, 0, 60], [0, 80, 60], [0, 0, 1.0]])
    grid = np.stack(np.meshgrid(np.arange(121.0), np.arange(121.0)), axis=-1).reshape(-1, 1, 2)
    ideal = cv2.undistortPoints(grid, matrix, np.array(lens[4:]), P=matrix).reshape(121, 121, 2)
    seen = cv2.remap(straight, ideal.astype(np.float32), None, cv2.INTER_LINEAR)
    (frame,) = CorrectedSource(ArraySource([seen], 1), lens).frames()
    assert frame.rgb is not None

    def row(image: np.ndarray, column: int) -> float:
        weight = image[:50, column, 0].astype(float)
        return float((weight * np.arange(50)).sum() / weight.sum())

    assert abs(row(seen, 60) - row(seen, 25)) > 1.0
    assert abs(row(frame.rgb, 60) - row(frame.rgb, 25)) < 0.3
    with pytest.raises(BadInputError, match="lens: expected"):
        CorrectedSource(ArraySource([seen], 1), (1.0, 2.0))


def test_look_alikes_far_apart_are_candidates_and_neighbours_are_not() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 32)).astype(np.float32)
    rows[10] = rows[2] + 0.05 * rows[3]
    rows[5] = rows[4]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    pairs = place_candidates(rows, count=1, least_apart=3)
    assert (10, 2) in pairs
    assert (5, 4) not in pairs
    assert place_candidates(rows[:2], count=3, least_apart=3) == []

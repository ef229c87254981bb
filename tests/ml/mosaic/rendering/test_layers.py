"""Layers of a mosaic, worked by hand."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import tifffile

from ml.mosaic.alignment.canvas import MosaicCanvas, PlacedFrame
from ml.mosaic.rendering.layers import scale_values, write_layers

VIEW = np.array([[0, 0], [39, 0], [39, 19], [0, 19.0]])


def _placed(index: int, shift: float, sigma: float) -> PlacedFrame:
    matrix = np.array([[1, 0, shift], [0, 1, 0], [0, 0, 1.0]])
    return PlacedFrame(index, index, index * 0.5, matrix, sigma)


def test_layers_of_two_overlapping_frames_equal_hand_worked_values(tmp_path: Path) -> None:
    canvas = MosaicCanvas(60, 20, {}, {})
    placed = (_placed(2, 0, 0.4), _placed(6, 20, 0.1))
    layers = write_layers(
        canvas, placed, VIEW, tmp_path, size_px=(40, 20), component=1, layer_px=2048
    )
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


def test_unseen_pixels_are_zero_and_a_constant_is_the_largest() -> None:
    seen = np.array([True, False, True])
    values = np.array([2.0, 9.0, 4.0], np.float32)
    np.testing.assert_array_equal(scale_values(values, seen, 2, 4, 254), [1, 0, 255])
    np.testing.assert_array_equal(scale_values(values, seen, 3, 3, 254), [255, 0, 255])

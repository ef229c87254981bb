"""Distortion taken off where the camera is known."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError
from ml.mosaic.frames.sources import ArraySource
from ml.mosaic.frames.undistort import UndistortedSource


def test_undistorting_straightens_lines() -> None:
    distortion = (80.0, 80.0, 60.0, 60.0, -0.25, 0.05, 0.0, 0.0)
    straight = np.zeros((121, 121, 3), np.uint8)
    straight[20:24] = 255
    matrix = np.array([[80, 0, 60], [0, 80, 60], [0, 0, 1.0]])
    grid = np.stack(np.meshgrid(np.arange(121.0), np.arange(121.0)), axis=-1).reshape(-1, 1, 2)
    ideal = cv2.undistortPoints(grid, matrix, np.array(distortion[4:]), P=matrix).reshape(
        121, 121, 2
    )
    seen = cv2.remap(straight, ideal.astype(np.float32), None, cv2.INTER_LINEAR)
    (frame,) = UndistortedSource(ArraySource([seen], 1), distortion).frames()
    assert frame.rgb is not None

    def row(image: np.ndarray, column: int) -> float:
        weight = image[:50, column, 0].astype(float)
        return float((weight * np.arange(50)).sum() / weight.sum())

    assert abs(row(seen, 60) - row(seen, 25)) > 1.0
    assert abs(row(frame.rgb, 60) - row(frame.rgb, 25)) < 0.3
    with pytest.raises(BadInputError, match="distortion: expected"):
        UndistortedSource(ArraySource([seen], 1), (1.0, 2.0))

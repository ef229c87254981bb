"""Real vessels to match."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.imaging.samples.packaged import packaged_image


@pytest.fixture(scope="session")
def vessels() -> np.ndarray:
    """(360, 480, 3) uint8: a part of a fundus photograph."""
    return np.ascontiguousarray(packaged_image("retina.jpg")[450:810, 300:780])


@pytest.fixture(scope="session")
def warped_vessels(vessels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The vessels after a homography, and the homography (3, 3)."""
    matrix = np.vstack([cv2.getRotationMatrix2D((240, 180), 8.0, 1.06), [1e-5, -2e-5, 1.0]])
    matrix[:2, 2] += (6.0, -4.0)
    return np.asarray(cv2.warpPerspective(vessels, matrix, (480, 360))), matrix

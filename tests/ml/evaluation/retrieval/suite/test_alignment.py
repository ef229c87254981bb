"""Alignment of the outlines of sections."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.errors import EmptyRegionError
from ml.evaluation.retrieval.suite.alignment import align_masks, tissue_mask


def test_outlines_are_aligned_at_any_rotation():
    mask = np.zeros((300, 300), np.uint8)
    cv2.fillPoly(mask, [np.array([[60, 60], [220, 80], [120, 230]], np.int32)], 255)
    true = cv2.getRotationMatrix2D((150, 150), 130, 1.0)
    matrix, overlap = align_masks(mask, np.asarray(cv2.warpAffine(mask, true, (300, 300))))
    corner = np.array([60, 60, 1.0])
    assert overlap > 0.93 and np.abs(matrix @ corner - true @ corner).max() < 8


def test_a_blank_section_has_no_tissue():
    with pytest.raises(EmptyRegionError, match="no tissue"):
        tissue_mask(np.full((50, 50, 3), 255, np.uint8))

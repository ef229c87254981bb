"""Hand-crafted descriptors in their best form."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.evaluation.matching.pairs import WarpedPair
from ml.evaluation.matching.papers import PointCache, carried_pair, papers_pair
from ml.keypoints.descriptors.classical import CLASSICAL_NAMES, ClassicalDescriptor
from tests.ml.keypoints.test_projection import similarity


@pytest.mark.parametrize("name", CLASSICAL_NAMES)
def test_rotated_and_scaled_points_are_matched_in_the_best_variant(name):
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

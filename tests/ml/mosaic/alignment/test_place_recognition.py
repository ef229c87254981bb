"""Place recognition: which loop keyframes are compared."""

from __future__ import annotations

import numpy as np

from ml.mosaic.alignment.place_recognition import similar_pairs


def test_distant_similar_frames_are_candidates_and_neighbours_are_not() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 32)).astype(np.float32)
    rows[10] = rows[2] + 0.05 * rows[3]
    rows[5] = rows[4]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    pairs = similar_pairs(rows, count=1, min_distance=3)
    assert (10, 2) in pairs
    assert (5, 4) not in pairs
    assert similar_pairs(rows[:2], count=3, min_distance=3) == []

"""Depth of a still, drawn at random."""

from __future__ import annotations

import numpy as np

from ml.training.vit.depth import synthetic_depth


def test_the_random_surface_is_smooth_positive_and_deterministic():
    depth = synthetic_depth(np.random.default_rng(1), (60, 90), relief=0.4)
    assert depth.shape == (60, 90) and depth.min() > 0
    assert np.isclose(np.median(depth), 1, atol=0.02)
    assert 0.2 < np.abs(np.log(depth)).max() <= 0.8
    assert max(np.abs(np.diff(depth, axis=a)).max() for a in (0, 1)) < 0.1
    again = synthetic_depth(np.random.default_rng(1), (60, 90), relief=0.4)
    assert np.array_equal(depth, again)


def test_without_relief_the_surface_is_flat():
    assert np.allclose(synthetic_depth(np.random.default_rng(0), (20, 20), relief=0), 1)

"""The learned metric ignores what only the look changes."""

from __future__ import annotations

import numpy as np

from ml.roi.features import FEATURE_DIM, block_weights
from ml.training.roi.metric import learn_metric


def slabs(seed=0):
    """Two slides, three looks of 400 patches: feature 0 follows the look, the others the patch."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(2):
        patch = rng.normal(size=(1, 400, FEATURE_DIM))
        looks = np.repeat(patch, 3, axis=0) + 0.05 * rng.normal(size=(3, 400, FEATURE_DIM))
        looks[..., 0] = rng.normal(size=(3, 400))
        out.append(looks.astype(np.float32))
    return out


def test_a_feature_that_follows_the_look_counts_less():
    metric = learn_metric(
        slabs(), np.array([0.5, 0.5]), block_scale=block_weights(), dim=FEATURE_DIM, ridge=0.1
    )
    gain = np.linalg.norm(metric.matrix, axis=1) * metric.scale
    assert gain[0] < 0.5 * np.median(gain[1:20])


def test_features_that_are_alike_keep_what_each_varies():
    data = slabs()
    for slab in data:
        slab[..., 1] *= 5
    alike = np.zeros(FEATURE_DIM, np.bool_)
    alike[:3] = True
    ones = np.ones(FEATURE_DIM, np.float32)
    share = np.array([0.5, 0.5])
    metric = learn_metric(data, share, block_scale=ones, alike=alike, dim=10, ridge=1.0)
    assert metric.scale[0] == metric.scale[1] == metric.scale[2] < 0.5
    assert np.allclose(metric.scale[3:], 1, atol=0.1)


def test_directions_come_by_falling_variance_and_unit_mean_square():
    data = slabs()
    metric = learn_metric(
        data, np.array([0.5, 0.5]), block_scale=block_weights(), dim=10, ridge=0.3
    )
    together = np.concatenate([slab.reshape(-1, FEATURE_DIM) for slab in data])
    found = ((together - metric.mean) * metric.scale) @ metric.matrix
    assert metric.matrix.shape == (FEATURE_DIM, 10)
    power = np.square(found).mean(axis=0)
    assert np.isclose(power.mean(), 1, atol=0.02) and (np.diff(power) < 1e-3).all()

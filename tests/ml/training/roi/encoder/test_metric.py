"""The metric learned without labels."""

from __future__ import annotations

import numpy as np
import pytest

from ml.training.roi.encoder.metric import learn_metric

DIM = 12


def slabs(seed=0, apart=0.0):
    """Two patients, three looks of 400 patches; their means differ in feature 0."""
    rng = np.random.default_rng(seed)
    out = []
    for side in (-1, 1):
        patch = rng.normal(size=(1, 400, DIM)) * np.linspace(2, 0.5, DIM)
        looks = np.repeat(patch, 3, axis=0) + 0.05 * rng.normal(size=(3, 400, DIM))
        looks[..., 0] += side * apart
        out.append(looks.astype(np.float32))
    return out


def mapped(metric, slab):
    return ((slab.reshape(-1, DIM) - metric.mean) * metric.scale) @ metric.matrix


def test_differences_between_patients_do_not_dominate():
    data = slabs(apart=10.0)
    metric = learn_metric(data, dim=DIM, ridge=0.01)
    first, second = (mapped(metric, slab) for slab in data)
    # Unwhitened, ten deviations lie between the means; within a patient all directions are alike.
    within = np.cov(first.T)
    assert np.allclose(within, np.eye(DIM) / DIM, atol=0.03)
    plain = learn_metric(data, dim=DIM, ridge=0.01, power=0.0)
    assert np.linalg.norm(plain.matrix[0]) <= np.linalg.norm(plain.matrix, axis=1).max() + 1e-6
    assert np.linalg.norm(first.mean(axis=0) - second.mean(axis=0)) > 0


def test_without_a_power_the_directions_are_only_rotated():
    data = slabs()
    metric = learn_metric(data, dim=DIM, ridge=0.1, power=0.0)
    gram = metric.matrix.T @ metric.matrix
    assert np.allclose(gram, gram[0, 0] * np.eye(DIM), atol=1e-5)


def test_each_direction_is_divided_by_its_deviation():
    """By numpy, patient by patient, without the ridge."""
    data = slabs(apart=3.0)
    metric = learn_metric(data, dim=DIM, ridge=0.0)
    rows = [((s.reshape(-1, DIM) - metric.mean) * metric.scale).astype(np.float64) for s in data]
    within = np.mean([np.cov(r.T, bias=True) for r in rows], axis=0)
    matrix = metric.matrix.astype(np.float64)
    assert np.allclose(matrix.T @ within @ matrix, np.eye(DIM) / DIM, atol=1e-4)


def test_the_main_directions_have_a_mean_square_of_one():
    data = slabs()
    metric = learn_metric(data, dim=5, ridge=0.3)
    assert metric.matrix.shape == (DIM, 5)
    assert metric.matrix.dtype == metric.scale.dtype == metric.mean.dtype == np.float32
    centred = [mapped(metric, s) for s in data]
    power = np.mean([np.square(c - c.mean(axis=0)).mean(axis=0) for c in centred], axis=0)
    assert power.sum() == pytest.approx(1, abs=0.02)
    assert (np.diff(power) < 1e-3).all()


def test_a_patient_counts_by_the_square_root_of_its_patches():
    few, many = slabs()[0][:, :100] + 1, slabs()[1] - 1
    metric = learn_metric([few, many], dim=DIM, ridge=0.1)
    means = [slab.reshape(-1, DIM).mean(axis=0) for slab in (few, many)]
    assert np.allclose(metric.mean, (10 * means[0] + 20 * means[1]) / 30, atol=1e-4)


def test_a_constant_feature_gives_a_finite_metric():
    data = slabs()
    for slab in data:
        slab[..., 3] = 7.0
    metric = learn_metric(data, dim=DIM, ridge=0.1)
    assert np.isfinite(metric.matrix).all() and np.isfinite(metric.scale).all()

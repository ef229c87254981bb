"""Metric learning from labels, with cross-validation over patients."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import BadInputError, CorruptFileError, ShapeError
from ml.index.metric_learning.metric import (
    IDENTITY,
    MetricConfig,
    learn_metric,
    read_metric,
    write_metric,
)


def world(*, signal, seed=0, patients=12, each=6, dim=8):
    """Two labels that differ in a weak direction, and patients that differ in a strong one."""
    rng = np.random.default_rng(seed)
    vectors, labels, patient_of = [], [], []
    for patient in range(patients):
        offset = 6 * rng.standard_normal()
        for number in range(each):
            vector = rng.standard_normal(dim)
            vector[0] += offset
            vector[1] += signal * (-1) ** number
            vectors.append(vector)
            labels.append("ab"[number % 2])
            patient_of.append(f"p{patient}")
    return np.array(vectors, np.float32), labels, patient_of


def precision_at_1(vectors, labels, patient_of):
    labels, patient_of = np.array(labels), np.array(patient_of)
    distance = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    distance[patient_of[:, None] == patient_of[None]] = np.inf
    return float((labels[distance.argmin(axis=1)] == labels).mean())


def test_labels_are_learned_despite_patient_variation():
    metric = learn_metric(*world(signal=1.5))
    assert not metric.is_identity
    assert metric.score > metric.plain + 0.1
    assert metric.margin > 2 * metric.error
    new_vectors, labels, patient_of = world(signal=1.5, seed=7)
    plain = precision_at_1(new_vectors, labels, patient_of)
    assert precision_at_1(metric.apply(new_vectors), labels, patient_of) > plain


def test_random_labels_give_the_identity():
    """With two standard errors, about one of twenty random data sets may pass."""
    left = 0
    for seed in range(20):
        vectors, labels, patient_of = world(signal=0.0, seed=seed)
        metric = learn_metric(vectors, labels, patient_of)
        if metric.is_identity:
            left += 1
            assert (metric.chosen, metric.score) == (IDENTITY, metric.plain)
            assert metric.apply(vectors) is vectors
    assert left >= 18


def test_labels_equal_to_patients_give_the_identity():
    """Each patient has its own label, so no other patient can have the right one."""
    vectors, _, patient_of = world(signal=0.0)
    assert learn_metric(vectors, patient_of, patient_of).is_identity


def test_the_metric_does_not_depend_on_the_order_of_regions():
    vectors, labels, patient_of = world(signal=1.5)
    order = np.random.default_rng(3).permutation(len(vectors))
    first = learn_metric(vectors, labels, patient_of)
    other = learn_metric(vectors[order], [labels[i] for i in order], [patient_of[i] for i in order])
    assert first.chosen == other.chosen
    assert np.allclose(first.matrix, other.matrix)


def test_without_shrinkage_the_covariance_within_labels_is_whitened():
    vectors, labels, patient_of = world(signal=1.5, each=40)
    metric = learn_metric(
        vectors, labels, patient_of, MetricConfig(shrinkage=(0.0,), stretch=(1.0,))
    )
    mapped, labels = metric.apply(vectors), np.array(labels)
    apart = mapped - np.stack([mapped[labels == label].mean(axis=0) for label in labels])
    covariance = apart.T @ apart / len(apart)
    assert np.allclose(covariance, covariance[0, 0] * np.eye(8), atol=1e-3 * covariance[0, 0])


def test_a_metric_round_trips_through_a_file(tmp_path):
    metric = learn_metric(*world(signal=1.5))
    path = tmp_path / "metric.npz"
    write_metric(path, metric)
    again = read_metric(path)
    assert np.array_equal(again.matrix, metric.matrix)
    assert (again.chosen, again.score, again.plain) == (metric.chosen, metric.score, metric.plain)
    path.write_bytes(b"x")
    with pytest.raises(CorruptFileError, match="metric"):
        read_metric(path)


def test_unusable_training_data_raises_an_error():
    vectors, labels, patient_of = world(signal=1.0)
    with pytest.raises(BadInputError, match="labels"):
        learn_metric(vectors, ["a"] * len(vectors), patient_of)
    with pytest.raises(BadInputError, match="patients"):
        learn_metric(vectors, labels, ["p"] * len(vectors))
    with pytest.raises(ShapeError):
        learn_metric(vectors, labels[1:], patient_of)
    with pytest.raises(ShapeError):
        learn_metric(vectors, labels, patient_of).apply(vectors[:, :3])

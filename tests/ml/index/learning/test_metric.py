"""A metric from labels: what it finds, what it leaves alone, and that patients are kept apart."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import BadInputError, CorruptFileError, ShapeError
from ml.index.learning.metric import IDENTITY, MetricConfig, learn_metric, read_metric, write_metric


def world(*, signal, seed=0, patients=12, each=6, dim=8):
    """Regions of two labels: a weak direction tells them apart, a strong one tells patients."""
    rng = np.random.default_rng(seed)
    vectors, labels, owners = [], [], []
    for patient in range(patients):
        own = 6 * rng.standard_normal()
        for number in range(each):
            vector = rng.standard_normal(dim)
            vector[0] += own
            vector[1] += signal * (-1) ** number
            vectors.append(vector)
            labels.append("ab"[number % 2])
            owners.append(f"p{patient}")
    return np.array(vectors, np.float32), labels, owners


def nearest_right(vectors, labels, owners):
    labels, owners = np.array(labels), np.array(owners)
    distance = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    distance[owners[:, None] == owners[None]] = np.inf
    return float((labels[distance.argmin(axis=1)] == labels).mean())


def test_labels_hidden_behind_patients_are_brought_out():
    found = learn_metric(*world(signal=1.5))
    assert not found.is_identity
    assert found.score > found.plain + 0.1
    assert found.margin > 2 * found.error
    fresh, labels, owners = world(signal=1.5, seed=7)
    plain = nearest_right(fresh, labels, owners)
    assert nearest_right(found.apply(fresh), labels, owners) > plain


def test_labels_that_vectors_do_not_know_leave_them_as_they_are():
    """Two standard errors: chance may pass in one world of twenty, give or take one."""
    left = 0
    for seed in range(20):
        vectors, labels, owners = world(signal=0.0, seed=seed)
        found = learn_metric(vectors, labels, owners)
        if found.is_identity:
            left += 1
            assert (found.chosen, found.score) == (IDENTITY, found.plain)
            assert found.apply(vectors) is vectors
    assert left >= 18


def test_a_label_that_is_the_patient_is_not_learned():
    """Each patient has a label of its own: no other patient can be right, so nothing is gained."""
    vectors, _, owners = world(signal=0.0)
    assert learn_metric(vectors, owners, owners).is_identity


def test_the_order_of_regions_changes_nothing():
    vectors, labels, owners = world(signal=1.5)
    order = np.random.default_rng(3).permutation(len(vectors))
    first = learn_metric(vectors, labels, owners)
    other = learn_metric(vectors[order], [labels[i] for i in order], [owners[i] for i in order])
    assert first.chosen == other.chosen
    assert np.allclose(first.matrix, other.matrix)


def test_without_shrinkage_or_stretch_the_covariance_within_labels_becomes_round():
    vectors, labels, owners = world(signal=1.5, each=40)
    found = learn_metric(vectors, labels, owners, MetricConfig(shrinkage=(0.0,), stretch=(1.0,)))
    mapped, labels = found.apply(vectors), np.array(labels)
    apart = mapped - np.stack([mapped[labels == label].mean(axis=0) for label in labels])
    covariance = apart.T @ apart / len(apart)
    assert np.allclose(covariance, covariance[0, 0] * np.eye(8), atol=1e-3 * covariance[0, 0])


def test_it_is_written_and_read(tmp_path):
    metric = learn_metric(*world(signal=1.5))
    path = tmp_path / "metric.npz"
    write_metric(path, metric)
    again = read_metric(path)
    assert np.array_equal(again.matrix, metric.matrix)
    assert (again.chosen, again.score, again.plain) == (metric.chosen, metric.score, metric.plain)
    path.write_bytes(b"x")
    with pytest.raises(CorruptFileError, match="not a metric"):
        read_metric(path)


def test_what_cannot_be_learned_from_is_refused():
    vectors, labels, owners = world(signal=1.0)
    with pytest.raises(BadInputError, match="labels"):
        learn_metric(vectors, ["a"] * len(vectors), owners)
    with pytest.raises(BadInputError, match="patients"):
        learn_metric(vectors, labels, ["p"] * len(vectors))
    with pytest.raises(ShapeError):
        learn_metric(vectors, labels[1:], owners)
    with pytest.raises(ShapeError):
        learn_metric(vectors, labels, owners).apply(vectors[:, :3])

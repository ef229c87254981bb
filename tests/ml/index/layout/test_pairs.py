"""Pairs within a distance and neighbours in other groups, against a slow search of all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from ml.index.layout import pairs as module
from ml.index.layout.pairs import nearest_distances, neighbours_in_other_groups, pairs_within

DIM = 6


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    return rng.normal(size=(90, DIM)).astype("f4"), rng.integers(0, 7, 90)


def all_distances(vectors):
    wide = vectors.astype(np.float64)
    return np.linalg.norm(wide[:, None] - wide[None], axis=2)


@pytest.mark.parametrize("block", [7, 1024])
def test_neighbours_are_the_nearest_of_other_groups(data, monkeypatch, block):
    monkeypatch.setattr(module, "_BLOCK_ROWS", block)
    vectors, groups = data
    rows, distance = neighbours_in_other_groups(vectors, groups, 4)
    expected = all_distances(vectors)
    expected[groups[:, None] == groups[None]] = np.inf
    assert np.array_equal(rows, np.argsort(expected, axis=1)[:, :4])
    assert np.allclose(distance, np.sort(expected, axis=1)[:, :4], atol=1e-4)


def test_a_single_group_has_no_neighbours():
    vectors = np.eye(DIM, dtype="f4")
    rows, distance = neighbours_in_other_groups(vectors, np.zeros(DIM, dtype=np.int64), 3)
    assert (rows == -1).all()
    assert np.isinf(distance).all()
    rows, _ = neighbours_in_other_groups(vectors[:0], np.zeros(0, dtype=np.int64), 3)
    assert rows.shape == (0, 3)


def test_missing_neighbours_are_minus_one_and_infinite():
    vectors = np.eye(DIM, dtype="f4")[:3]
    rows, distance = neighbours_in_other_groups(vectors, np.array([0, 0, 1]), 2)
    assert rows.tolist() == [[2, -1], [2, -1], [0, 1]]
    assert np.isinf(distance[0, 1])


@pytest.mark.parametrize("block", [11, 1024])
def test_pairs_are_exactly_those_within_the_distance(data, monkeypatch, block):
    monkeypatch.setattr(module, "_BLOCK_ROWS", block)
    vectors, groups = data
    expected = all_distances(vectors)
    radius = float(np.quantile(expected[np.triu_indices(90, 1)], 0.05))
    across, within = pairs_within(vectors, groups, radius, max_pairs=1000)
    assert not across.is_cut
    for result, same in ((across, False), (within, True)):
        a, b = np.nonzero(np.triu(expected <= radius, 1) & ((groups[:, None] == groups) == same))
        assert {tuple(row) for row in result.rows.tolist()} == set(zip(a, b, strict=True))
        assert (np.diff(result.distance) >= 0).all()
        assert np.allclose(
            result.distance, expected[result.rows[:, 0], result.rows[:, 1]], atol=1e-6
        )


def test_the_nearest_of_too_many_pairs_are_returned(data, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_ROWS", 13)
    vectors, groups = data
    expected = all_distances(vectors)[np.triu_indices(90, 1)]
    differ = (groups[:, None] != groups)[np.triu_indices(90, 1)]
    across, _ = pairs_within(vectors, groups, 100.0, max_pairs=9)
    assert across.is_cut
    assert np.allclose(across.distance, np.sort(expected[differ])[:9], atol=1e-6)


def test_copies_far_from_the_origin_are_found():
    """Squared distances from float32 products lose small differences of long vectors."""
    rng = np.random.default_rng(2)
    vectors = (rng.normal(size=(40, DIM)) + 300).astype("f4")
    vectors[31] = vectors[4]
    across, _ = pairs_within(vectors, np.arange(40), 1e-3, max_pairs=10)
    assert across.rows.tolist() == [[4, 31]]
    assert across.distance.tolist() == [0.0]


def test_nearest_distances_equal_the_minimum_of_all(data):
    vectors, _ = data
    distances = nearest_distances(vectors[:5], vectors[5:])
    assert np.allclose(distances, all_distances(vectors)[:5, 5:].min(axis=1), atol=1e-4)
    assert np.isinf(nearest_distances(vectors[:2], vectors[:0])).all()

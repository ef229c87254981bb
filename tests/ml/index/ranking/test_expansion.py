"""Query expansion by neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import ShapeError
from ml.index.ranking.expansion import expanded_query


def test_a_query_moves_towards_its_neighbours_by_their_cosine():
    query = np.array([2.0, 0.0])
    neighbours = np.array([[0.6, 0.8], [-1.0, 0.0]])  # cosines .6 and -1: the second has weight 0
    moved = np.array([2.0 + 0.6 * 0.6, 0.6 * 0.8])
    expected = 2.0 * moved / np.linalg.norm(moved)
    assert np.allclose(expanded_query(query, neighbours), expected)


def test_without_neighbours_the_query_is_unchanged():
    query = np.array([0.3, -0.4, 1.0])
    assert np.allclose(expanded_query(query, np.zeros((0, 3))), query)


def test_neighbours_of_another_length_raise_an_error():
    with pytest.raises(ShapeError, match="neighbours"):
        expanded_query(np.ones(2), np.ones((1, 3)))

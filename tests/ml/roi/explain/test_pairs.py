"""Decomposition of a similarity into pairs of patches."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import ShapeError
from ml.roi.explain.pairs import Vertices, explain_pair


def vertices(rows, side=10.0):
    """Separate patches in a row."""
    left = np.arange(len(rows)) * 2 * side
    boxes = np.stack([left, left * 0, left + side, left * 0 + side], axis=1)
    return Vertices(np.asarray(rows, np.float32), boxes, np.zeros(1, np.float32))


def test_the_decomposition_equals_a_hand_worked_value():
    a, b = vertices([[2, 0], [0, 2]]), vertices([[3, 0], [-1, 0], [1, 0]])
    explanation = explain_pair(a, b)  # vectors (1, 1) and (1, 0)
    assert explanation.similarity == pytest.approx(1 / np.sqrt(2))
    assert explanation.distance == pytest.approx(1.0)
    # the terms are the products over 6 pairs and the length sqrt(2)
    assert explanation.contributions_a == pytest.approx(np.array([6, 0]) / (6 * np.sqrt(2)))
    assert explanation.contributions_b == pytest.approx(np.array([6, -2, 2]) / (6 * np.sqrt(2)))
    assert [(pair.a, pair.b) for pair in explanation.pairs] == [(0, 0)]
    assert explanation.pairs[0].share == pytest.approx(6 / 8)
    assert explanation.half_from() == (1 / 2, 1 / 3)


def test_contributions_sum_to_the_cosine():
    rng = np.random.default_rng(3)
    a, b = vertices(rng.normal(1, 2, (40, 8))), vertices(rng.normal(1, 2, (25, 8)))
    explanation = explain_pair(a, b)
    x, y = a.rows.mean(axis=0), b.rows.mean(axis=0)
    cosine = x @ y / (np.linalg.norm(x) * np.linalg.norm(y))
    for total in (
        explanation.similarity,
        explanation.contributions_a.sum(),
        explanation.contributions_b.sum(),
    ):
        assert total == pytest.approx(cosine, rel=1e-5)
    by_share = [pair.share for pair in explanation.pairs]
    assert by_share == sorted(by_share, reverse=True)
    assert sum(by_share) < 1


def test_selected_patches_do_not_overlap():
    rows = np.tile(np.array([[1.0, 0.0]], np.float32), (9, 1))
    boxes = np.array([[x, 0, x + 10, 10] for x in range(9)], float)  # all within one patch
    crowded = Vertices(rows, boxes, np.zeros(1, np.float32))
    explanation = explain_pair(crowded, vertices(rows))
    assert len(explanation.pairs) == 3, "0, 4 and 8 are far enough apart, all others closer"


def test_inconsistent_input_raises_an_error():
    with pytest.raises(ShapeError, match="encoder"):
        explain_pair(vertices([[1, 0]]), vertices([[1, 0, 0]]))
    with pytest.raises(ShapeError, match="boxes"):
        explain_pair(
            Vertices(np.ones((2, 2), np.float32), np.zeros((1, 4)), np.zeros(1, np.float32)),
            vertices([[1, 0]]),
        )

"""Matching: hand-worked values and an independent slow version."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import BadInputError, ShapeError, UnknownNameError
from ml.keypoints import match
from ml.keypoints.match import match_descriptors, match_mutual

A = np.array([[1, 0], [10, 0], [4, 0]], np.float32)
B = np.array([[2, 0], [11, 0]], np.float32)


def test_nearest_neighbours_equal_hand_worked_values() -> None:
    pairs, distance = match_descriptors(A, B, strategy="nn")
    assert pairs.tolist() == [[0, 0], [1, 1], [2, 0]]
    np.testing.assert_allclose(distance, [1, 1, 2], atol=1e-3)


def test_mutual_rejects_one_sided_pairs() -> None:
    pairs, _ = match_descriptors(A, B, strategy="mutual")
    assert pairs.tolist() == [[0, 0], [1, 1]]


def test_a_threshold_rejects_distant_pairs() -> None:
    pairs, _ = match_descriptors(A, B, strategy="nnt", threshold=1.5)
    assert pairs.tolist() == [[0, 0], [1, 1]]


def test_the_ratio_test_equals_hand_worked_values() -> None:  # 1/10, 1/8, 2/7
    pairs, _ = match_descriptors(A, B, strategy="ratio", ratio=0.2)
    assert pairs.tolist() == [[0, 0], [1, 1]]


def test_score_is_one_minus_the_ratio() -> None:
    pairs, score = match_mutual(A, B, ratio=0.9)
    assert pairs.tolist() == [[0, 0], [1, 1]]
    np.testing.assert_allclose(score, [1 - 1 / 10, 1 - 1 / 8], atol=1e-3)


@pytest.mark.parametrize("block", [7, 1000])
def test_blocks_equal_the_slow_version(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match, "BLOCK_ROWS", block)
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(50, 16)).astype(np.float32), rng.normal(size=(40, 16)).astype("f4")
    slow = np.linalg.norm(a[:, None].astype("f8") - b[None].astype("f8"), axis=2)
    expected = [
        [i, j]
        for i in range(50)
        for j in range(40)
        if slow[i].argmin() == j and slow[:, j].argmin() == i
    ]
    pairs, distance = match_descriptors(a, b, strategy="mutual")
    assert pairs.tolist() == expected
    np.testing.assert_allclose(distance, [slow[i, j] for i, j in expected], rtol=1e-3)


def test_zero_rows_never_match() -> None:
    pairs, _ = match_descriptors(np.zeros((2, 2), np.float32), B, strategy="nn")
    assert pairs.shape == (0, 2)


def test_single_rows_match() -> None:
    pairs, score = match_mutual(A[:1], B[:1], ratio=0.8)
    assert pairs.tolist() == [[0, 0]]
    assert np.isfinite(score).all()


def test_invalid_input_raises_an_error() -> None:
    with pytest.raises(UnknownNameError, match="'best'"):
        match_descriptors(A, B, strategy="best")
    with pytest.raises(BadInputError, match="threshold"):
        match_descriptors(A, B, strategy="nnt")
    with pytest.raises(ShapeError, match=r"\(M, 2\) like a"):
        match_descriptors(A, np.zeros((2, 3), np.float32))
    with pytest.raises(ShapeError, match="NaN"):
        match_descriptors(A, np.full((2, 2), np.nan, np.float32))

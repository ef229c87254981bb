"""Exact search and merging of results, on hand-worked values."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from ml.index.exact import exact_distances, exact_merge, exact_search, nearest, nearest_of_ascending


def part(*pairs):
    return (
        np.array([i for i, _ in pairs], dtype=np.int64),
        np.array([d for _, d in pairs], dtype=np.float64),
    )


def test_merged_results_are_ordered_by_distance_and_id():
    ids, distance = exact_merge([part((5, 1.0), (2, 3.0)), part((4, 1.0), (9, 2.0))], 3)
    assert ids.tolist() == [4, 5, 9]
    assert distance.tolist() == [1.0, 1.0, 2.0]


def test_an_id_in_two_parts_gets_its_smallest_distance():
    ids, distance = exact_merge([part((5, 2.0)), part((5, 1.0), (6, 3.0))], 5)
    assert (ids.tolist(), distance.tolist()) == ([5, 6], [1.0, 3.0])


def test_merging_no_results_gives_no_results():
    assert exact_merge([], 3)[0].tolist() == []


def test_ties_are_ordered_by_id_for_any_order_of_rows():
    ids = np.array([9, 3, 7, 1, 5, 8, 2, 6, 4, 0])
    vectors = np.ones((10, 4), dtype=np.float32)
    hit_ids, _ = exact_search(np.zeros(4, dtype=np.float32), ids, vectors, 2)
    assert hit_ids.tolist() == [0, 1]


def test_equal_vectors_have_equal_distances_among_any_others():
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((20_001, 37)).astype(np.float32)
    vectors[[0, 9, 16_384, 20_000]] = vectors[5]
    distance = exact_distances(vectors[1], vectors)
    assert len(set(distance[[0, 5, 9, 16_384, 20_000]].tolist())) == 1


def test_the_index_never_loads_torch():
    code = "import sys, ml.index, ml.cli.index; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("n", [1, 5, 12, 90])
def test_nearest_of_ascending_equals_nearest(n):
    rng = np.random.default_rng(n)
    ids, distance = np.arange(n) * 7, rng.integers(0, 4, n).astype(np.float64)
    for k in (1, 3, n):
        for first, other in zip(
            nearest_of_ascending(ids, distance, k), nearest(ids, distance, k), strict=True
        ):
            assert np.array_equal(first, other)

"""Permitted and excluded rows, compared with the set functions of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ml.index import open_index
from ml.index.rows import ExcludedRows, RowSet, ascending, positions_of
from ml.index.selection import Selection


@pytest.mark.parametrize("seed", range(20))
def test_positions_and_order_equal_those_of_numpy(seed):
    rng = np.random.default_rng(seed)
    numbers = np.unique(rng.integers(-20, 20, rng.integers(0, 30)))
    queries = rng.integers(-30, 30, rng.integers(0, 30))
    assert ascending(queries).tolist() == np.unique(queries).tolist()
    numbers_found = numbers[positions_of(numbers, queries)]
    assert numbers_found.tolist() == queries[np.isin(queries, numbers)].tolist()
    out = ExcludedRows(np.unique(queries), 60)
    assert out.dropped(numbers).tolist() == np.setdiff1d(numbers, queries).tolist()


def test_copies_are_float64_rows_and_count_as_memory():
    vectors = np.random.default_rng(0).standard_normal((9, 3)).astype(np.float32)
    rows = RowSet(np.array([1, 4, 8]), 9)
    before = rows.nbytes
    copies = rows.copies(vectors)
    assert copies.dtype == np.float64
    assert np.array_equal(copies, vectors[[1, 4, 8]])
    assert rows.copies(vectors) is copies
    assert rows.nbytes == before + copies.nbytes


@pytest.mark.parametrize("n_left", [0, 3, 19])
def test_few_permitted_rows_are_ordered_by_id_without_excluded_ones(tmp_path, n_left):
    """Twenty equal vectors and twenty others, of which some are excluded."""
    index = open_index(tmp_path / "i", dim=4)
    ids = np.arange(400) * 3
    vectors = np.repeat(np.arange(20, dtype=np.float32), 20)[:, None] * np.ones(4, np.float32)
    index.build(ids, vectors)
    selection, excluded = Selection(ids[:40]), ids[:n_left]
    for _ in range(2):  # the second search uses the rows that the first one prepared
        hit_ids, distance = index.search(np.zeros(4, np.float32), 30, selection, excluded)
        assert hit_ids.tolist() == ids[n_left:40][:30].tolist()
        assert distance.tolist() == ([0.0] * (20 - n_left) + [2.0] * 20)[:30]
    every, _ = index.search(np.zeros(4, np.float32), 99, selection, excluded)
    assert every.tolist() == ids[n_left:40].tolist()

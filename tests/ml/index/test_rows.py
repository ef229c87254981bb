"""Rows that a search may find, and those it may not, against numpy's own set functions."""

from __future__ import annotations

import numpy as np
import pytest

from ml.index import Selection, open_index
from ml.index.rows import LeftOut, RowSet, ascending, places_of


@pytest.mark.parametrize("seed", range(20))
def test_places_and_order_are_those_of_numpys_set_functions(seed):
    rng = np.random.default_rng(seed)
    numbers = np.unique(rng.integers(-20, 20, rng.integers(0, 30)))
    asked = rng.integers(-30, 30, rng.integers(0, 30))
    assert ascending(asked).tolist() == np.unique(asked).tolist()
    found = numbers[places_of(numbers, asked)]
    assert found.tolist() == asked[np.isin(asked, numbers)].tolist()
    out = LeftOut(np.unique(asked), 60)
    assert out.dropped(numbers).tolist() == np.setdiff1d(numbers, asked).tolist()


def test_copies_are_the_rows_as_they_are_measured_and_count_as_memory():
    vectors = np.random.default_rng(0).standard_normal((9, 3)).astype(np.float32)
    rows = RowSet(np.array([1, 4, 8]), 9)
    before = rows.nbytes
    copies = rows.copies(vectors)
    assert copies.dtype == np.float64
    assert np.array_equal(copies, vectors[[1, 4, 8]])
    assert rows.copies(vectors) is copies
    assert rows.nbytes == before + copies.nbytes


@pytest.mark.parametrize("n_left", [0, 3, 19])
def test_few_permitted_rows_keep_ties_by_id_and_leave_out_what_they_must(tmp_path, n_left):
    """Twenty equal vectors, and as many further ones: who is left out does not come back."""
    index = open_index(tmp_path / "i", dim=4)
    ids = np.arange(400) * 3
    vectors = np.repeat(np.arange(20, dtype=np.float32), 20)[:, None] * np.ones(4, np.float32)
    index.build(ids, vectors)
    selection, left_out = Selection(ids[:40]), ids[:n_left]
    for _ in range(2):  # the second search goes by what the first one prepared
        found, distance = index.search(np.zeros(4, np.float32), 30, selection, left_out)
        assert found.tolist() == ids[n_left:40][:30].tolist()
        assert distance.tolist() == ([0.0] * (20 - n_left) + [2.0] * 20)[:30]
    every, _ = index.search(np.zeros(4, np.float32), 99, selection, left_out)
    assert every.tolist() == ids[n_left:40].tolist()

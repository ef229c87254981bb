"""Search by inverted lists compared with exact search, without and with filters."""

from __future__ import annotations

import json

import faiss
import numpy as np
import pytest

from ml.errors import IndexFormatError
from ml.index import open_index, rows
from ml.index.files.engine import IndexConfig
from ml.index.files.segments import inverted_lists, segment, subsets
from ml.index.selection import Selection
from tests.ml.index.conftest import lists_for_few

DIM, COUNT, K = 24, 6_000, 25


@pytest.fixture
def clustered():
    rng = np.random.default_rng(3)
    centroids = rng.standard_normal((60, DIM)) * 3
    which = rng.integers(0, 60, COUNT)
    return (centroids[which] + rng.standard_normal((COUNT, DIM))).astype(np.float32), which


@pytest.fixture
def pair(tmp_path, monkeypatch, clustered):
    """The same vectors searched by lists and exactly."""
    vectors, _ = clustered
    flat = open_index(tmp_path / "flat", dim=DIM)
    flat.build(np.arange(COUNT) * 2, vectors)
    lists_for_few(monkeypatch, recall=0.998)
    large = open_index(tmp_path / "large", dim=DIM)
    large.build(np.arange(COUNT) * 2, vectors)
    assert (large.stats.kind, flat.stats.kind) == ("ivf", "flat")
    return large, flat


def recall(large, flat, queries, **options):
    """Mean recall of the exact results."""
    shares = []
    for q in queries:
        expected = flat.search(q, K, **options)[0]
        shares.append(np.isin(expected, large.search(q, K, **options)[0]).mean())
    return np.mean(shares)


def permitted_ids(which, share):
    """Ids of a random share of the rows, and of a share of the clusters."""
    even = np.flatnonzero(np.random.default_rng(4).random(COUNT) < share)
    return {"even": even * 2, "clusters": np.flatnonzero(which < 60 * share) * 2}


@pytest.mark.parametrize("uses_parts", [False, True])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_recall_is_high_under_any_filter(pair, clustered, monkeypatch, share, uses_parts):
    large, flat = pair
    if uses_parts:
        monkeypatch.setattr(rows, "SUBSET_SHARE", 1)
        monkeypatch.setattr(rows, "_USES_BEFORE_SUBSET", 1)
    vectors, which = clustered
    queries = vectors[::600] + 0.05
    assert recall(large, flat, queries) >= 0.99
    for name, ids in permitted_ids(which, share).items():
        assert recall(large, flat, queries, allowed=Selection(ids)) >= 0.99, name
        assert recall(large, flat, queries, allowed=Selection(ids), excluded=ids[::7]) >= 0.99


def test_only_some_lists_are_visited(pair):
    large, _ = pair
    lists = large._current().segment.lists
    assert lists.probes.plain < lists.n_lists / 2
    assert lists.probes.recall >= 0.998 and lists.probes.recall_filtered >= 0.998


def test_few_permitted_rows_of_a_large_base_are_searched_exactly(pair, clustered, monkeypatch):
    large, flat = pair
    monkeypatch.setattr(segment, "MAX_SCANNED_ROWS", 1_000)
    vectors, _ = clustered
    ids = np.arange(0, 2 * COUNT, 40)
    for q in vectors[:5]:
        assert (
            large.search(q, 40, allowed=ids)[0].tolist()
            == flat.search(q, 40, allowed=ids)[0].tolist()
        )
    excluded_ids = np.arange(2 * COUNT - 20)
    assert len(large.search(vectors[0], K, excluded=excluded_ids)[0]) == 10


@pytest.mark.parametrize(
    ("max_scanned", "name"), [(10_000, "FlatSubset"), (100, "ClusteredSubset")]
)
def test_few_permitted_rows_are_copied(pair, clustered, monkeypatch, max_scanned, name):
    large, flat = pair
    monkeypatch.setattr(inverted_lists, "MAX_SCANNED_ROWS", 10_000)
    monkeypatch.setattr(subsets, "_MAX_SCANNED_ROWS", max_scanned)
    monkeypatch.setattr(rows, "_USES_BEFORE_SUBSET", 1)
    vectors, which = clustered
    chosen = Selection(permitted_ids(which, 0.19)["even"])
    queries = vectors[::600] + 0.05
    assert recall(large, flat, queries, allowed=chosen, excluded=chosen.ids[:9]) >= 0.99
    assert recall(large, flat, queries, allowed=chosen, excluded=chosen.ids[:200]) >= 0.99
    made = chosen.rows_in(large._current().segment)._part
    assert type(made).__name__ == name
    before = chosen.ids.nbytes + len(chosen) * 8
    assert chosen.nbytes > before, "its copies count as memory"


def test_equal_vectors_give_equal_lists(pair, tmp_path, clustered):
    assert pair[0].stats.count == COUNT
    again = open_index(tmp_path / "again", dim=DIM)
    again.build(np.arange(COUNT) * 2, clustered[0])
    for name in ("lists.faiss", "list_of.npy", "lists.json"):
        first, second = (tmp_path / item / "base-000001" / name for item in ("large", "again"))
        assert first.read_bytes() == second.read_bytes(), name


def test_damaged_lists_raise_an_error_and_missing_ones_are_not_needed(pair, tmp_path, clustered):
    base = tmp_path / "large" / "base-000001"
    with pytest.raises(IndexFormatError, match="base-000001"):
        (base / "lists.json").write_text(json.dumps({"plain": 1}))
        open_index(tmp_path / "large", dim=DIM)
    other = faiss.IndexIVFFlat(faiss.IndexFlatL2(DIM), DIM, 2)
    other.train(clustered[0][:200])
    faiss.write_index(other, str(base / "lists.faiss"))
    (base / "lists.json").write_text(
        json.dumps({"plain": 1, "filtered": 1, "recall": 1, "recall_filtered": 1})
    )
    with pytest.raises(IndexFormatError, match="lists"):
        open_index(tmp_path / "large", dim=DIM)
    (base / "lists.faiss").unlink()
    assert open_index(tmp_path / "large", dim=DIM).stats.kind == "flat"


def test_a_selection_is_looked_up_once_per_base(tmp_path, clustered, monkeypatch):
    index = open_index(tmp_path / "i", dim=DIM, config=IndexConfig())
    index.build(np.arange(COUNT), clustered[0])
    q = clustered[0][0]
    assert index.search(q, 1)[0].tolist() == [0]
    calls = []
    looked_up = segment.Segment.rows_of
    monkeypatch.setattr(
        segment.Segment, "rows_of", lambda self, ids: calls.append(len(ids)) or looked_up(self, ids)
    )
    chosen = Selection([5, 3, 3, 10**9])
    for _ in range(3):
        assert sorted(index.search(q, 9, allowed=chosen)[0]) == [3, 5]
    assert calls == [3]
    index.build(np.arange(4), clustered[0][:4])
    assert index.search(q, 9, allowed=chosen)[0].tolist() == [3]
    assert calls.count(3) == 2, "once more for the new base"

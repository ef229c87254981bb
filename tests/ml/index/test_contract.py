"""Contract of all index engines, in files or on servers."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import BadInputError, IndexFormatError, ShapeError
from ml.index import open_index
from ml.index.files.engine import IndexConfig
from ml.index.protocol import VectorIndex
from tests.ml.index.conftest import IN_FILES

DIM = 6
in_files = pytest.mark.parametrize("engine", IN_FILES, indirect=True)
"""Cases skipped on a server: checked before any engine, or covered by the random edits."""


@pytest.fixture
def opens(engine, tmp_path, request):
    """Function that opens the same index repeatedly, with any engine."""
    if engine == "milvus":
        return request.getfixturevalue("opens_milvus")

    def opened(dim=DIM, *, tag="", config=None):
        return open_index(tmp_path / "i", dim=dim, tag=tag, config=config)

    return opened


def slow_search(entries, q, k, allowed=None, excluded=()):
    """Slow search by the definition, in plain Python."""
    rows = [
        (float(np.sqrt(sum((float(a) - float(b)) ** 2 for a, b in zip(v, q, strict=True)))), i)
        for i, v in entries.items()
        if (allowed is None or i in allowed) and i not in excluded
    ]
    return [i for _, i in sorted(rows)[:k]]


def vectors(n, seed=0, dim=DIM):
    return np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)


def filled(opens, n=50):
    index, v = opens(), vectors(n)
    index.build(np.arange(n) * 3, v)
    return index, {3 * i: v[i] for i in range(n)}


@pytest.mark.slow
def test_the_engine_implements_the_protocol(opens):
    index = opens()
    assert isinstance(index, VectorIndex)
    assert (index.stats.kind, index.stats.version, len(index.ids())) == ("empty", 0, 0)
    assert len(index.search(np.zeros(DIM), 3)[0]) == 0
    index.build([5, 2], vectors(2))
    assert index.ids().tolist() == [2, 5]
    assert (index.stats.kind != "empty", index.stats.count, index.dim) == (True, 2, DIM)
    index.remove([5])
    assert index.ids().tolist() == [2]


@in_files
def test_a_hand_worked_distance(opens):
    index = opens(dim=2)
    index.add([7, 9], [[3.0, 4.0], [0.0, 1.0]])
    ids, distance = index.search([0.0, 0.0], 5)
    assert ids.tolist() == [9, 7]
    assert distance.tolist() == [1.0, 5.0]
    assert ids.dtype == np.int64


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_results_after_random_edits_equal_a_slow_search(opens, engine, seed):
    if engine == "milvus" and seed:
        pytest.skip("a server takes long: one seed")
    rng = np.random.default_rng(seed)
    config = IndexConfig(min_delta=12, delta_share=1000, ivf_above=10**9)
    index = opens(dim=DIM, config=config)
    reader = opens(dim=DIM)
    entries = {}
    for step in range(60):
        action = rng.integers(0, 10)
        if action < 5:
            free = np.setdiff1d(np.arange(-40, 160), list(entries))
            ids = rng.choice(free, size=rng.integers(1, 6), replace=False)
            # Coarse values make exact ties common.
            new = rng.integers(-1, 2, size=(len(ids), DIM)).astype(np.float32)
            index.add(ids, new)
            entries.update(zip(ids.tolist(), new, strict=True))
        elif action < 8 and entries:
            removed = rng.choice(list(entries), size=min(len(entries), 3), replace=False)
            assert index.remove([*removed, 999]) == len(removed)
            for i in removed:
                del entries[i]
        elif action == 8 and entries:
            index.build(list(entries), np.array(list(entries.values())).reshape(-1, DIM))
        q = rng.integers(-1, 2, size=DIM).astype(np.float32)
        k = int(rng.integers(1, 12))
        allowed = rng.choice(np.arange(-40, 160), size=120) if step % 3 == 0 else None
        excluded = rng.choice(np.arange(-40, 160), size=20) if step % 2 == 0 else None
        ids, distance = reader.search(q, k, allowed=allowed, excluded=excluded)
        want = slow_search(
            entries,
            q,
            k,
            None if allowed is None else set(allowed.tolist()),
            set() if excluded is None else set(excluded.tolist()),
        )
        assert ids.tolist() == want
        assert (np.diff(distance) >= 0).all()
        assert reader.stats.count == len(entries)


@pytest.mark.slow
def test_many_ties_are_ordered_by_id(opens):
    index = opens(dim=DIM)
    ids = np.random.default_rng(1).permutation(500)
    index.build(ids, np.ones((500, DIM), dtype=np.float32))
    hit_ids, distance = index.search(np.zeros(DIM), 7)
    assert hit_ids.tolist() == list(range(7))
    assert len(set(distance.tolist())) == 1


@in_files
def test_k_above_the_count_returns_all(opens):
    index, _ = filled(opens, n=5)
    assert len(index.search(np.zeros(DIM), 100)[0]) == 5
    assert len(index.search(np.zeros(DIM), 100, allowed=[0, 3, 4])[0]) == 2
    assert len(index.search(np.zeros(DIM), 100, allowed=[])[0]) == 0


@in_files
def test_a_removed_id_can_be_added_with_another_vector(opens):
    index, _ = filled(opens, n=5)
    index.remove([3])
    index.add([3], np.full((1, DIM), 9.0))
    ids, distance = index.search(np.full(DIM, 9.0), 1)
    assert (ids.tolist(), distance.tolist()) == ([3], [0.0])
    assert index.stats.count == 5


@pytest.mark.slow
def test_removing_all_leaves_an_empty_index(opens):
    index, entries = filled(opens, n=5)
    index.remove(list(entries))
    assert index.stats.count == 0
    assert len(index.search(np.zeros(DIM), 3)[0]) == 0
    index.add([1], vectors(1))
    assert index.search(np.zeros(DIM), 3)[0].tolist() == [1]


@pytest.mark.slow
def test_a_reader_sees_each_version_without_reopening(opens):
    reader = opens(dim=DIM)
    writer = opens(dim=DIM)
    assert reader.stats.version == 0
    writer.build([1, 2], vectors(2))
    assert reader.stats.count == 2
    writer.add([3], vectors(1, seed=5))
    assert 3 in reader.search(vectors(1, seed=5)[0], 1)[0]
    writer.build([4], vectors(1))
    assert reader.search(np.zeros(DIM), 9)[0].tolist() == [4]
    assert reader.stats.version == 3


BAD = {
    "one dimension": (([1], np.zeros(DIM)), ShapeError, r"vectors: expected \(N, 6\)"),
    "another dim": (([1], np.zeros((1, 5))), ShapeError, r"\(1, 5\)"),
    "fewer ids": (([1], np.zeros((2, DIM))), ShapeError, r"ids: expected \(2,\)"),
    "float ids": (([1.5], np.zeros((1, DIM))), ShapeError, "float64"),
    "words": (([1], [["a"] * DIM]), ShapeError, "vectors"),
    "nothing": (([], np.zeros((0, DIM))), BadInputError, "no vectors"),
    "twice": (([4, 4], np.zeros((2, DIM))), BadInputError, "id 4 is given more than once"),
    "nan": (([4], [[0, 0, np.nan, 0, 0, 0]]), BadInputError, "id 4.*got nan at position 2"),
    "infinite": (([4], [[0, 0, 0, 0, 0, np.inf]]), BadInputError, "got inf"),
    "huge": (([4], [[0, 0, 0, 0, 0, 1e30]]), BadInputError, "position 5"),
}


@in_files
def test_invalid_entries_raise_an_error_and_change_nothing(opens):
    index, entries = filled(opens)
    for arguments, error, text in BAD.values():
        for action in (index.add, index.build):
            with pytest.raises(error, match=text):
                action(*arguments)
    assert index.stats.count == len(entries)
    assert index.stats.version == 1


@pytest.mark.slow
def test_an_existing_id_raises_an_error(opens):
    index, _ = filled(opens)
    with pytest.raises(BadInputError, match="id 3"):
        index.add([1, 3], vectors(2))
    index.add([1], vectors(1))
    with pytest.raises(BadInputError, match="id 1"):
        index.add([1], vectors(1))


@in_files
def test_invalid_queries_raise_an_error(opens):
    index, _ = filled(opens)
    for q in (np.zeros(5), np.zeros((1, DIM)), "x", None):
        with pytest.raises(ShapeError, match="q: expected"):
            index.search(q, 1)
    with pytest.raises(BadInputError, match=r"q: .*finite"):
        index.search([np.nan] * DIM, 1)
    for k in (0, -1, 2.5, True):
        with pytest.raises(BadInputError, match="k: expected"):
            index.search(np.zeros(DIM), k)


@pytest.mark.slow
def test_another_dimension_or_encoder_raises_an_error(opens):
    opens(tag="gnn-1").build([1], vectors(1))
    with pytest.raises(IndexFormatError, match=r"dim 7\b.*\b6$"):
        opens(dim=7, tag="gnn-1")
    with pytest.raises(IndexFormatError, match=r"'gnn-2'.*'gnn-1'"):
        opens(tag="gnn-2")
    assert opens().stats.tag == "gnn-1"

"""The index against an independent slow search, across versions, crashes and processes."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path

import numpy as np
import pytest

from ml.errors import BadInputError, IndexBusyError, IndexFormatError, MlError, ShapeError
from ml.index import IndexConfig, VectorIndex, open_index
from ml.index.manifest import writer_lock

DIM = 6


def slow_search(entries, q, k, allowed=None, excluded=()):
    """The definition, in plain Python."""
    rows = [
        (float(np.sqrt(sum((float(a) - float(b)) ** 2 for a, b in zip(v, q, strict=True)))), i)
        for i, v in entries.items()
        if (allowed is None or i in allowed) and i not in excluded
    ]
    return [i for _, i in sorted(rows)[:k]]


def vectors(n, seed=0, dim=DIM):
    return np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)


def filled(folder, n=50, **config):
    index = open_index(folder, dim=DIM, config=IndexConfig(**config))
    v = vectors(n)
    index.build(np.arange(n) * 3, v)
    return index, {3 * i: v[i] for i in range(n)}


def test_the_engine_fills_the_protocol(tmp_path):
    assert isinstance(open_index(tmp_path / "i"), VectorIndex)


def test_a_hand_worked_distance(tmp_path):
    index = open_index(tmp_path / "i", dim=2)
    index.add([7, 9], [[3.0, 4.0], [0.0, 1.0]])
    ids, distance = index.search([0.0, 0.0], 5)
    assert ids.tolist() == [9, 7]
    assert distance.tolist() == [1.0, 5.0]
    assert ids.dtype == np.int64


def test_an_empty_index_finds_nothing(tmp_path):
    index = open_index(tmp_path / "i", dim=DIM)
    ids, distance = index.search(np.zeros(DIM), 3)
    assert ids.shape == distance.shape == (0,)
    assert index.stats.kind == "empty"
    assert not (tmp_path / "i").exists(), "reading makes no folder"


@pytest.mark.parametrize("seed", range(3))
def test_random_edits_answer_as_the_slow_search_does(engine, tmp_path, seed):
    rng = np.random.default_rng(seed)
    config = IndexConfig(delta_least=12, delta_share=1000, ivf_above=10**9)
    index = open_index(tmp_path / "i", dim=DIM, config=config)
    reader = open_index(tmp_path / "i", dim=DIM)
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
            gone = rng.choice(list(entries), size=min(len(entries), 3), replace=False)
            assert index.remove([*gone, 999]) == len(gone)
            for i in gone:
                del entries[i]
        elif action == 8:
            index.compact()
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


def test_ties_beyond_any_margin_are_ordered_by_id(engine, tmp_path):
    index = open_index(tmp_path / "i", dim=DIM)
    ids = np.random.default_rng(1).permutation(500)
    index.build(ids, np.ones((500, DIM), dtype=np.float32))
    found, distance = index.search(np.zeros(DIM), 7)
    assert found.tolist() == list(range(7))
    assert len(set(distance.tolist())) == 1


def test_more_than_there_is_gives_what_there_is(engine, tmp_path):
    index, _ = filled(tmp_path / "i", n=5)
    assert len(index.search(np.zeros(DIM), 100)[0]) == 5
    assert len(index.search(np.zeros(DIM), 100, allowed=[0, 3, 4])[0]) == 2
    assert len(index.search(np.zeros(DIM), 100, allowed=[])[0]) == 0


def test_a_removed_id_may_come_back_with_another_vector(tmp_path):
    index, _ = filled(tmp_path / "i", n=5)
    index.remove([3])
    index.add([3], np.full((1, DIM), 9.0))
    ids, distance = index.search(np.full(DIM, 9.0), 1)
    assert (ids.tolist(), distance.tolist()) == ([3], [0.0])
    assert index.stats.count == 5
    index.compact()
    assert index.search(np.full(DIM, 9.0), 1)[0].tolist() == [3]
    assert (index.stats.n_delta, index.stats.n_removed) == (0, 0)


def test_everything_removed_leaves_an_empty_index(tmp_path):
    index, entries = filled(tmp_path / "i", n=5)
    index.remove(list(entries))
    index.compact()
    assert index.stats.count == 0
    assert len(index.search(np.zeros(DIM), 3)[0]) == 0
    index.add([1], vectors(1))
    assert index.search(np.zeros(DIM), 3)[0].tolist() == [1]


def test_a_reader_sees_each_version_without_reopening(tmp_path):
    reader = open_index(tmp_path / "i", dim=DIM)
    writer = open_index(tmp_path / "i", dim=DIM)
    assert reader.stats.version == 0
    writer.build([1, 2], vectors(2))
    assert reader.stats.count == 2
    writer.add([3], vectors(1, seed=5))
    assert 3 in reader.search(vectors(1, seed=5)[0], 1)[0]
    writer.build([4], vectors(1))
    assert reader.search(np.zeros(DIM), 9)[0].tolist() == [4]
    assert reader.stats.version == 3


def test_old_files_are_removed_and_the_present_ones_stay(tmp_path):
    index, _ = filled(tmp_path / "i")
    for seed in range(3):
        index.build([1, 2], vectors(2, seed=seed))
    names = sorted(p.name for p in (tmp_path / "i").iterdir())
    assert names == ["base-000004", "manifest.json", "writer.lock"]


@pytest.mark.parametrize("step", ["write_segment", "append_records", "write_manifest"])
def test_a_crash_at_any_step_leaves_the_previous_version(tmp_path, monkeypatch, step):
    index, entries = filled(tmp_path / "i")
    before = index.search(np.zeros(DIM), 60)[0].tolist()
    from ml.index import engine

    real = getattr(engine, step)

    def dies(*args, **kwargs):
        if step != "write_manifest":
            real(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, step, dies)
    action = index.add if step == "append_records" else index.build
    with pytest.raises(KeyboardInterrupt):
        action([1001], vectors(1, seed=9))
    monkeypatch.undo()
    again = open_index(tmp_path / "i", dim=DIM)
    assert again.search(np.zeros(DIM), 60)[0].tolist() == before
    again.add([1001], vectors(1, seed=9))
    assert again.stats.count == len(entries) + 1
    again.build([1], vectors(1))
    assert again.stats.count == 1


def test_a_torn_record_is_cut_off_by_the_next_writer(tmp_path):
    index, _ = filled(tmp_path / "i")
    index.add([1001], vectors(1, seed=9))
    (log,) = (tmp_path / "i").glob("delta-*.log")
    with log.open("ab") as stream:
        stream.write(b"torn")
    index.add([1002], vectors(1, seed=10))
    assert open_index(tmp_path / "i", dim=DIM).search(vectors(1, seed=10)[0], 1)[0] == [1002]


def test_a_second_writer_waits_and_is_told_when_it_takes_too_long(tmp_path):
    index = open_index(tmp_path / "i", dim=DIM, config=IndexConfig(lock_timeout_s=0.05))
    with writer_lock(tmp_path / "i", timeout_s=1), pytest.raises(IndexBusyError, match=r"0\.05 s"):
        index.add([1], vectors(1))


def _add_from_another_process(folder, start):
    index = open_index(folder, dim=DIM, config=IndexConfig(delta_least=10, delta_share=10**6))
    for i in range(start, start + 12):
        index.add([i], vectors(1, seed=i))


def test_writers_of_several_processes_lose_nothing_and_readers_never_fail(tmp_path):
    folder = tmp_path / "i"
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=_add_from_another_process, args=(folder, 100 * n)) for n in range(2)
    ]
    failures, stop = [], threading.Event()

    def read():
        reader = open_index(folder, dim=DIM)
        while not stop.is_set():
            try:
                ids, _ = reader.search(np.zeros(DIM), 5)
                assert len(ids) == min(5, len(ids))
            except MlError as error:
                failures.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    for process in writers:
        process.start()
    for process in writers:
        process.join(60)
    stop.set()
    thread.join()
    assert not failures
    index = open_index(folder, dim=DIM)
    assert sorted(index.search(np.zeros(DIM), 100)[0]) == [*range(12), *range(100, 112)]


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


@pytest.mark.parametrize("name", BAD)
def test_bad_entries_are_refused_and_nothing_is_lost(tmp_path, name):
    arguments, error, text = BAD[name]
    index, entries = filled(tmp_path / "i")
    for action in (index.add, index.build):
        with pytest.raises(error, match=text):
            action(*arguments)
    assert index.stats.count == len(entries)
    assert index.stats.version == 1


def test_an_id_that_is_there_already_is_refused(tmp_path):
    index, _ = filled(tmp_path / "i")
    with pytest.raises(BadInputError, match="id 3 is in the index already"):
        index.add([1, 3], vectors(2))
    index.add([1], vectors(1))
    with pytest.raises(BadInputError, match="id 1 is in the index already"):
        index.add([1], vectors(1))


@pytest.mark.parametrize("q", [np.zeros(5), np.zeros((1, DIM)), "x", None])
def test_a_query_of_another_shape_is_refused(tmp_path, q):
    index, _ = filled(tmp_path / "i")
    with pytest.raises(ShapeError, match="q: expected"):
        index.search(q, 1)


def test_a_query_of_nan_and_a_k_of_nought_are_refused(tmp_path):
    index, _ = filled(tmp_path / "i")
    with pytest.raises(BadInputError, match="q: expected finite"):
        index.search([np.nan] * DIM, 1)
    for k in (0, -1, 2.5, True):
        with pytest.raises(BadInputError, match="k: expected"):
            index.search(np.zeros(DIM), k)


def test_another_dimension_or_encoder_is_refused(tmp_path):
    open_index(tmp_path / "i", dim=DIM, tag="gnn-1").build([1], vectors(1))
    with pytest.raises(IndexFormatError, match="expected dim 7, got 6"):
        open_index(tmp_path / "i", dim=7)
    with pytest.raises(IndexFormatError, match="expected tag 'gnn-2', got 'gnn-1'"):
        open_index(tmp_path / "i", dim=DIM, tag="gnn-2")
    assert open_index(tmp_path / "i", dim=DIM).stats.tag == "gnn-1"


def test_a_damaged_index_is_told_from_a_missing_one(tmp_path):
    filled(tmp_path / "i")
    (tmp_path / "i" / "base-000001" / "flat.faiss").write_bytes(b"rubbish")
    with pytest.raises(IndexFormatError, match="damaged"):
        open_index(tmp_path / "i", dim=DIM)
    (tmp_path / "i" / "manifest.json").write_text("{")
    with pytest.raises(IndexFormatError, match=r"manifest.json"):
        open_index(tmp_path / "i", dim=DIM)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="is a file"):
        open_index(Path(tmp_path / "file"))
    with pytest.raises(BadInputError, match="dim"):
        open_index(tmp_path / "i", dim=0)

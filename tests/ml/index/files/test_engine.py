"""The FAISS engine across versions, crashes and processes."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from ml.errors import BadInputError, IndexBusyError, IndexFormatError, MlError
from ml.index import open_index
from ml.index.files.engine import IndexConfig
from ml.index.files.manifest import writer_lock
from ml.index.protocol import VectorIndex

DIM = 6


def vectors(n, seed=0, dim=DIM):
    return np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)


def build_index(folder, n=50, **config):
    index = open_index(folder, dim=DIM, config=IndexConfig(**config))
    v = vectors(n)
    index.build(np.arange(n) * 3, v)
    return index, {3 * i: v[i] for i in range(n)}


def test_the_engine_implements_the_protocol(tmp_path):
    assert isinstance(open_index(tmp_path / "i"), VectorIndex)


def test_an_empty_index_returns_no_hits(tmp_path):
    index = open_index(tmp_path / "i", dim=DIM)
    ids, distance = index.search(np.zeros(DIM), 3)
    assert ids.shape == distance.shape == (0,)
    assert index.stats.kind == "empty"
    assert not (tmp_path / "i").exists(), "reading makes no folder"


def test_files_of_old_versions_are_removed(tmp_path):
    index, _ = build_index(tmp_path / "i")
    for seed in range(3):
        index.build([1, 2], vectors(2, seed=seed))
    names = sorted(p.name for p in (tmp_path / "i").iterdir())
    assert names == ["base-000004", "manifest.json", "writer.lock"]


def test_a_reader_sees_an_index_that_was_deleted_and_rebuilt(tmp_path):
    reader, _ = build_index(tmp_path / "i")
    reader.search(np.zeros(DIM), 1)
    shutil.rmtree(tmp_path / "i")
    new = vectors(4, seed=1)
    open_index(tmp_path / "i", dim=DIM).build([7, 8, 9, 10], new)
    assert sorted(reader.search(np.zeros(DIM), 9)[0].tolist()) == [7, 8, 9, 10]
    assert reader.ids().tolist() == [7, 8, 9, 10]


def test_the_base_stays_open_while_only_the_log_grows(tmp_path):
    index, _ = build_index(tmp_path / "i")
    before = index._current().segment
    index.add([1001], vectors(1, seed=9))
    assert index._current().segment is before


@pytest.mark.parametrize("step", ["write_segment", "append_records", "write_manifest"])
def test_a_crash_at_any_step_leaves_the_previous_version(tmp_path, monkeypatch, step):
    index, entries = build_index(tmp_path / "i")
    before = index.search(np.zeros(DIM), 60)[0].tolist()
    from ml.index.files import engine

    real = getattr(engine, step)

    def fail(*args, **kwargs):
        if step != "write_manifest":
            real(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, step, fail)
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


def test_the_next_writer_truncates_a_torn_record(tmp_path):
    index, _ = build_index(tmp_path / "i")
    index.add([1001], vectors(1, seed=9))
    (log,) = (tmp_path / "i").glob("delta-*.log")
    with log.open("ab") as stream:
        stream.write(b"torn")
    index.add([1002], vectors(1, seed=10))
    assert open_index(tmp_path / "i", dim=DIM).search(vectors(1, seed=10)[0], 1)[0] == [1002]


def test_a_second_writer_waits_and_raises_an_error_after_the_timeout(tmp_path):
    index = open_index(tmp_path / "i", dim=DIM, config=IndexConfig(lock_timeout_s=0.05))
    with writer_lock(tmp_path / "i", timeout_s=1), pytest.raises(IndexBusyError, match=r"0\.05 s"):
        index.add([1], vectors(1))


def _add_from_another_process(folder, start):
    index = open_index(folder, dim=DIM, config=IndexConfig(min_delta=10, delta_share=10**6))
    for i in range(start, start + 12):
        index.add([i], vectors(1, seed=i))


def test_concurrent_writers_lose_no_entry_and_readers_never_fail(tmp_path):
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


def test_another_dimension_or_encoder_raises_an_error(tmp_path):
    open_index(tmp_path / "i", dim=DIM, tag="gnn-1").build([1], vectors(1))
    with pytest.raises(IndexFormatError, match=r"dim 7\b.*\b6$"):
        open_index(tmp_path / "i", dim=7)
    with pytest.raises(IndexFormatError, match=r"'gnn-2'.*'gnn-1'"):
        open_index(tmp_path / "i", dim=DIM, tag="gnn-2")
    assert open_index(tmp_path / "i", dim=DIM).stats.tag == "gnn-1"


def test_an_index_of_another_release_raises_a_specific_error(tmp_path):
    build_index(tmp_path / "i")
    manifest = tmp_path / "i" / "manifest.json"
    values = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(values | {"format": values["format"] + 1, "shards": 3}))
    with pytest.raises(IndexFormatError, match="release"):
        open_index(tmp_path / "i", dim=DIM)


def test_a_damaged_index_raises_an_error(tmp_path):
    build_index(tmp_path / "i")
    (tmp_path / "i" / "base-000001" / "flat.faiss").write_bytes(b"rubbish")
    with pytest.raises(IndexFormatError, match="damaged"):
        open_index(tmp_path / "i", dim=DIM)
    (tmp_path / "i" / "manifest.json").write_text("{")
    with pytest.raises(IndexFormatError, match=r"manifest.json"):
        open_index(tmp_path / "i", dim=DIM)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="is a file"):
        open_index(Path(tmp_path / "file"))
    with pytest.raises(BadInputError, match=r"^dim\b.*\b0$"):
        open_index(tmp_path / "i", dim=0)

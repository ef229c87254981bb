"""Indexes on a real Milvus server: interrupted filling, a killed server, long filters."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from ml.errors import IndexFormatError, IndexUnreachableError
from ml.index.exact import exact_search
from ml.index.milvus import engine
from ml.index.milvus import vectors as stored
from ml.index.milvus.engine import MilvusConfig, drop_indexes, open_milvus
from ml.index.milvus.records import read_record
from ml.index.milvus.server import MilvusServer

DIM, COUNT = 6, 40
IDS = np.arange(COUNT) * 2
VECTORS = np.random.default_rng(1).standard_normal((COUNT, DIM)).astype(np.float32)
on_server = [pytest.mark.services, pytest.mark.timeout(300)]


def test_an_unreachable_server_raises_an_error():
    with pytest.raises(IndexUnreachableError):
        open_milvus(MilvusServer("http://127.0.0.1:9"), "x", DIM)


class TestMilvus:
    pytestmark = on_server

    @pytest.mark.slow
    def test_an_interrupted_fill_resumes(self, opens_milvus, monkeypatch):
        monkeypatch.setattr(stored, "_MAX_REQUEST_ROWS", 8)
        index = opens_milvus()
        index.build([1], VECTORS[:1])
        index.fill("of then").put(IDS[:24], VECTORS[:24])
        # The server confirmed, and the process died before it recorded this.
        record = read_record(index._server, f"{index._alias}_2")
        assert list(stored.upsert(index._server, record.collection, IDS[24:32], VECTORS[24:32]))
        assert index.search(VECTORS[3], 3)[0].tolist() == [1], "what is half there is not found"
        filling = opens_milvus().fill("of now")
        assert (filling.source, filling.done_until, filling.count) == ("of then", 46, 24)
        filling.put(IDS[24:], VECTORS[24:])
        opens_milvus().finish(filling)
        assert index.ids().tolist() == IDS.tolist()
        assert (index.stats.count, index.stats.version, index.source) == (COUNT, 2, "of then")
        assert index.search(VECTORS[17], 1)[0].tolist() == [IDS[17]]

    @pytest.mark.slow
    def test_missing_vectors_raise_an_error_at_the_end_of_a_fill(self, opens_milvus):
        index = opens_milvus()
        filling = index.fill("x")
        filling.put(IDS, VECTORS)
        stored.delete(index._server, f"{index._alias}_1", IDS[:3])
        with pytest.raises(IndexFormatError, match=r"^37 of 40 "):
            index.finish(filling)
        assert index.stats.count == 0 and index.fill("y").done_until is None

    @pytest.mark.slow
    def test_indexes_of_a_prefix_are_dropped_except_listed_ones(self, milvus, opens_milvus):
        for name in ("one", "two"):
            opens_milvus(name=name).build(IDS, VECTORS)
        opens_milvus(name="half").fill("").put(IDS, VECTORS)
        group = opens_milvus()._alias.removeprefix("tessera_").removesuffix("_one")
        drop_indexes(milvus.server, group, keep=frozenset([f"{group}/two"]))
        assert opens_milvus(name="two").search(VECTORS[0], 1)[0].tolist() == [0]
        assert opens_milvus(name="one").stats.count == 0
        collections = [name for name in milvus.server.call("list_collections") if group in name]
        assert len(collections) == 1

    @pytest.mark.slow
    def test_filters_of_any_length_hold_for_approximate_search(self, opens_milvus, monkeypatch):
        rng = np.random.default_rng(3)
        ids, vectors = np.arange(3_000), rng.standard_normal((3_000, DIM)).astype(np.float32)
        index = opens_milvus(config=MilvusConfig(max_exact=1_000))
        index.build(ids, vectors)
        assert index.stats.kind == "hnsw" and index.stats.recall > 0.9
        far = np.flatnonzero(vectors[:, 0] < -1)
        filters = {
            "short": (rng.choice(ids, 30, replace=False), ids[:50]),
            "long": (rng.choice(ids, 1_500, replace=False), ids[: 2 * engine.MAX_LISTED]),
            "far away": (np.setdiff1d(far, [7]), None),
        }
        q = np.array([3, 0, 0, 0, 0, 0], dtype=np.float32)
        for max_listed in (engine.MAX_LISTED, 20):
            monkeypatch.setattr(engine, "MAX_LISTED", max_listed)
            for allowed, excluded in filters.values():
                hit_ids, distance = index.search(q, 10, allowed=allowed, excluded=excluded)
                want, _ = exact_search(q, ids, vectors, 10, allowed=allowed, excluded=excluded)
                assert np.isin(hit_ids, allowed).all() and len(hit_ids) == 10
                assert excluded is None or not np.isin(hit_ids, excluded).any()
                assert np.isin(hit_ids, want).sum() >= 9 and (np.diff(distance) >= 0).all()

    @pytest.mark.slow
    def test_the_deadline_of_searches_does_not_limit_a_fill(self, milvus):
        server = replace(milvus.server, search_s=1e-6)
        config = MilvusConfig(max_exact=10)
        index = open_milvus(server, "deadline", DIM, config=config)
        index.build(IDS, VECTORS)
        assert index.stats.kind == "hnsw" and index.stats.count == len(IDS)
        with pytest.raises(IndexUnreachableError):
            index.search(VECTORS[0], 1)

    @pytest.mark.slow
    def test_a_server_killed_during_a_fill_loses_no_confirmed_vectors(self, milvus):
        vectors = np.random.default_rng(2).standard_normal((100, DIM)).astype(np.float32)
        index = open_milvus(milvus.server, "killed", DIM)
        filling, confirmed = index.fill("all"), threading.Event()

        def kill():
            confirmed.wait(60)
            milvus.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(IndexUnreachableError):
            for start in range(0, 10**6, 100):
                filling.put(np.arange(start, start + 100), vectors)
                if start == 500:
                    confirmed.set()
        killer.join()
        milvus.start()
        index = open_milvus(milvus.server, "killed", DIM)
        resumed, count = index.fill("of now"), filling.count
        # The last states may be lost with the server. Their vectors are written again, and those of
        # the call that was not answered, which may be stored.
        assert resumed.source == "all" and 0 < resumed.count <= count
        end = count + 100
        for start in range(resumed.count, end, 100):
            resumed.put(np.arange(start, start + 100), vectors)
        assert index.finish(resumed) == 1
        assert index.ids().tolist() == list(range(end))
        assert index.search(vectors[17], 1)[0].tolist() == [17]

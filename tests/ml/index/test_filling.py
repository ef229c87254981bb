"""A filling on Qdrant that is stopped at any place goes on, and is found only when it is whole."""

from __future__ import annotations

import uuid
from types import SimpleNamespace

import numpy as np
import pytest

from ml.errors import IndexFormatError, IndexUnreachableError
from ml.index.qdrant import QdrantConfig, QdrantServer, drop_group, open_qdrant, points
from ml.index.qdrant.records import records_of

pytest.importorskip("qdrant_client")
DIM, COUNT = 6, 40
IDS = np.arange(COUNT) * 2
VECTORS = np.random.default_rng(1).standard_normal((COUNT, DIM)).astype(np.float32)


@pytest.fixture
def opened(monkeypatch):
    monkeypatch.setattr(points, "_ROWS_MOST", 8)
    server, group = QdrantServer(":memory:"), str(uuid.uuid4())

    def again(name="one", **config):
        name = f"{group}/{name}"
        return open_qdrant(server, name, DIM, tag="t", group=group, config=QdrantConfig(**config))

    yield again
    drop_group(server, group)


class Stop(BaseException):
    """As a process that is killed: nothing is caught, nothing is put in order."""


def stopped_after(requests, index, monkeypatch):
    """Fill, and stop when so many requests have been made, before what was put is recorded."""
    real, made = points.put, []

    def counted(*args):
        for last in real(*args):
            made.append(last)
            if len(made) == requests:
                raise Stop
            yield last

    monkeypatch.setattr(points, "put", counted)
    with pytest.raises(Stop):
        index.fill("of then").put(IDS, VECTORS)
    monkeypatch.setattr(points, "put", real)


@pytest.mark.parametrize("requests", [1, 3, 5])
def test_a_stopped_filling_goes_on_where_it_stopped(opened, monkeypatch, requests):
    index = opened()
    index.build([1], VECTORS[:1])
    stopped_after(requests, index, monkeypatch)
    assert index.search(VECTORS[3], 3)[0].tolist() == [1], "what is half there is not found"
    filling = opened().fill("of now")
    assert filling.source == "of then", "it goes on with what it was begun with"
    assert (filling.done_until or -1) < 2 * 8 * requests
    after = -1 if filling.done_until is None else filling.done_until
    filling.put(IDS[after < IDS], VECTORS[after < IDS])
    opened().finish(filling)
    assert index.ids().tolist() == IDS.tolist()
    assert (index.stats.count, index.stats.version) == (COUNT, 2)
    for n in (0, 17, COUNT - 1):
        assert index.search(VECTORS[n], 1)[0].tolist() == [IDS[n]]
    assert index.source == "of then"


def test_what_a_process_left_that_died_between_two_writes_is_taken_away(opened, monkeypatch):
    index = opened()
    index.build(IDS, VECTORS)
    take = points.taken_away
    monkeypatch.setattr(points, "taken_away", lambda *_: None)
    index.build(IDS[:3], VECTORS[:3])  # the generation before stays where it is
    monkeypatch.setattr(points, "taken_away", take)
    record = index._record()
    assert points.counted(index._server, record, record.key(1)) == COUNT
    assert index.ids().tolist() == IDS[:3].tolist()
    index.fill("")
    assert points.counted(index._server, record, record.key(1)) == 0


def test_one_that_was_dropped_meanwhile_is_not_taken_for_whole(opened, monkeypatch):
    index = opened()
    filling = index.fill("x")
    filling.put(IDS[:20], VECTORS[:20])
    index.drop()
    filling.put(IDS[20:], VECTORS[20:])
    with pytest.raises(IndexFormatError, match="20 of 40"):
        index.finish(filling)
    assert len(opened().search(VECTORS[0], 3)[0]) == 0
    assert opened().fill("y").done_until is None, "the next begins anew"


def test_a_group_is_dropped_but_for_what_is_kept(opened):
    for name in ("one", "two", "three"):
        opened(name).build(IDS, VECTORS)
    opened("half").fill("").put(IDS, VECTORS)
    server, record = QdrantServer(":memory:"), opened("two")._record()
    assert drop_group(server, record.group, keep=frozenset([record.name])) == 3
    assert opened("two").stats.count == COUNT and opened("one").stats.count == 0
    with pytest.raises(IndexFormatError, match="expected dim 7"):
        open_qdrant(server, record.name, 7, tag="t")
    assert points.counted(server, record, record.key(1)) == COUNT
    everything = server.client.count(record.collection, exact=True).count
    assert everything == COUNT, "no vector of the others is left"


def test_beyond_the_bound_the_recall_is_measured_and_the_server_only_proposes(opened):
    index = opened(exact_most=10)
    index.build(IDS, VECTORS)
    assert (index.stats.kind, index.stats.recall) == ("hnsw", 1.0)
    near = np.argsort(((VECTORS - VECTORS[5]) ** 2).sum(1))[:4]
    assert index.search(VECTORS[5], 4)[0].tolist() == IDS[near].tolist()


def test_a_server_that_is_not_there_is_said_to_be():
    with pytest.raises(IndexUnreachableError, match="cannot be reached"):
        open_qdrant(QdrantServer("http://127.0.0.1:9", timeout_s=1), "x", DIM)


def test_the_indexes_of_a_group_are_those_that_most_replicas_know():
    asked = []

    class Client:
        def collection_exists(self, name):
            return True

        def scroll(self, collection, **how):
            asked.append(how.get("consistency"))
            return [], None

    server = SimpleNamespace(client=Client(), consistency=QdrantServer("", replicas=3).consistency)
    assert records_of(server, "lab") == []
    assert asked == ["majority"]

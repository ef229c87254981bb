"""Index files that a process keeps open between searches."""

from __future__ import annotations

import gc
import sys
import uuid
import weakref
from pathlib import Path

import numpy as np

from portal.embeddings.indexes import Scope
from portal.embeddings.models import Encoder, IndexSnapshot
from portal.embeddings.selectors.index_files.readers import Readers
from portal.embeddings.services.indexes import index_build_submit, indexes_delete


def _mapped(snapshot: IndexSnapshot) -> bool:
    gc.collect()
    return snapshot.path in Path("/proc/self/maps").read_text()


def _built(world, version: int) -> IndexSnapshot:
    index_build_submit(scope=Scope(Encoder.objects.get(), world.lab.pk))
    world.run_jobs()
    return IndexSnapshot.objects.get(version=version)


def test_a_replaced_index_file_is_closed(world):
    world.embedded(world.canvas(world.case("A1")))
    encoder, readers = Encoder.objects.get(), Readers()
    first, second = (_built(world, version) for version in (1, 2))
    assert readers.get(first, encoder) is not None
    assert _mapped(first)
    assert readers.get(second, encoder) is readers.get(second, encoder)
    assert _mapped(second)
    assert not _mapped(first)


def test_index_files_stay_open_after_versions_restart(world):
    world.embedded(world.canvas(world.case("A1")))
    encoder, readers = Encoder.objects.get(), Readers()
    _first, second = (_built(world, version) for version in (1, 2))
    assert readers.get(second, encoder) is not None
    indexes_delete(lab_id=world.lab.pk)
    again = _built(world, 1)
    assert readers.get(again, encoder) is readers.get(again, encoder)
    assert not _mapped(second)


def test_a_running_search_uses_the_older_file(world):
    world.embedded(world.canvas(world.case("A1")))
    encoder, readers = Encoder.objects.get(), Readers()
    first, second = (_built(world, version) for version in (1, 2))
    newest = readers.get(second, encoder)
    older = readers.get(first, encoder)
    assert older is not None
    assert len(older.search(np.zeros(4, dtype=np.float32), 1)[0]) == 1
    assert readers.get(second, encoder) is newest
    del older
    assert not _mapped(first)


def test_the_least_recently_used_index_files_are_closed_first(world, monkeypatch):
    monkeypatch.setattr(sys.modules[Readers.__module__], "_MAX_READERS", 1)
    world.embedded(world.canvas(world.case("A1")))
    encoder, readers = Encoder.objects.get(), Readers()
    snapshot = _built(world, 1)
    first = weakref.ref(readers.get(snapshot, encoder))
    other = IndexSnapshot.objects.get()
    other.pk, other.lab_id = uuid.uuid4(), uuid.uuid4()
    opened = readers.get(other, encoder)
    assert readers.get(other, encoder) is opened
    gc.collect()
    assert first() is None

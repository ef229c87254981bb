"""What a process keeps between its searches."""

from __future__ import annotations

import gc
import sys
import uuid
import weakref
from pathlib import Path

import numpy as np

from portal.retrieval.indexes import Scope
from portal.retrieval.models import Encoder, IndexSnapshot
from portal.retrieval.selectors.files.readers import Readers
from portal.retrieval.services import index_build_submit, indexes_forget


def _mapped(snapshot: IndexSnapshot) -> bool:
    gc.collect()
    return snapshot.path in Path("/proc/self/maps").read_text()


def _built(world, version: int) -> IndexSnapshot:
    index_build_submit(scope=Scope(Encoder.objects.get(), world.lab.pk), version=version)
    world.run_jobs()
    return IndexSnapshot.objects.get(version=version)


def test_a_replaced_index_file_is_let_go(world):
    world.embedded(world.canvas(world.case("A1")))
    encoder, readers = Encoder.objects.get(), Readers()
    first, second = (_built(world, version) for version in (1, 2))
    assert readers.get(first, encoder) is not None
    assert _mapped(first)
    assert readers.get(second, encoder) is readers.get(second, encoder)
    assert _mapped(second)
    assert not _mapped(first)


def test_versions_that_begin_anew_are_kept_open_too(world):
    world.embedded(world.canvas(world.case("A1")))
    encoder, readers = Encoder.objects.get(), Readers()
    _first, second = (_built(world, version) for version in (1, 2))
    assert readers.get(second, encoder) is not None
    indexes_forget(lab_id=world.lab.pk)
    again = _built(world, 1)
    assert readers.get(again, encoder) is readers.get(again, encoder)
    assert not _mapped(second)


def test_a_search_that_began_with_the_older_file_ends_with_it(world):
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


def test_the_files_of_many_labs_are_let_go_the_longest_unused_first(world, monkeypatch):
    monkeypatch.setattr(sys.modules[Readers.__module__], "_READERS_KEPT", 1)
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

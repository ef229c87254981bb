"""Behaviour of every store, tested with a folder and with a bucket on a real server."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from portal.archive.storage.folder_store import FolderStore
from portal.archive.storage.store import Store

Received = Callable[[bytes], tuple[Path, str]]


def put(store: Store, received: Received, data: bytes) -> str:
    path, name = received(data)
    store.put(path, name)
    assert not path.exists(), "a file that was put is taken over"
    return name


def test_a_stored_object_has_its_size_and_bytes(store: Store, received: Received) -> None:
    before_s = time.time() - 2  # the server tells whole seconds
    name = put(store, received, b"slide")
    status = store.stat(name)
    assert status is not None
    assert (status.name, status.size_bytes) == (name, 5)
    assert before_s < status.changed_s < time.time() + 2
    assert store.local(name).read_bytes() == b"slide"


def test_an_object_uploaded_in_advance_is_stored(store: Store, received: Received) -> None:
    path, name = received(b"large")
    store.send(path, name)
    assert path.exists(), "sending takes nothing away"
    store.put(path, name)
    assert store.local(name).read_bytes() == b"large"


def test_the_same_content_is_put_twice(store: Store, received: Received) -> None:
    name = put(store, received, b"same")
    assert put(store, received, b"same") == name
    assert [file.name for file in store.files("assets")] == [name]


def test_a_file_that_is_not_there(store: Store, received: Received) -> None:
    _, name = received(b"never put")
    assert store.stat(name) is None
    assert store.delete(name) is False
    with pytest.raises(FileNotFoundError):
        store.local(name).open("rb")
    with pytest.raises(FileNotFoundError):
        store.read("identity.json")
    with pytest.raises(FileNotFoundError):
        store.move(name, f"orphans/2026-01-01/{name}")
    assert list(store.files("assets")) == [] == list(store.files("orphans"))


def test_a_deletion_during_a_listing_is_tolerated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gone", "kept"):
        (tmp_path / name).write_bytes(b"x")
    stat = Path.stat

    def look_and_delete(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        status = stat(path, follow_symlinks=follow_symlinks)
        if path.name == "gone":
            path.unlink()  # by somebody else, as soon as it was seen
        return status

    monkeypatch.setattr(Path, "stat", look_and_delete)
    store = FolderStore(tmp_path)
    assert "kept" in [file.name for file in store.files("")]
    assert [file.name for file in store.files("")] == ["kept"]
    (tmp_path / "gone").write_bytes(b"x")
    store.stat("gone")
    assert store.stat("gone") is None


def test_small_files_are_replaced_atomically(store: Store) -> None:
    store.write("identity.json", b"longer than the next")
    store.write("identity.json", b"short")
    assert store.read("identity.json") == b"short"


def test_a_file_moves_to_the_orphan_folder_and_back(store: Store, received: Received) -> None:
    name = put(store, received, b"deleted")
    response = put(store, received, b"kept")
    orphan = f"orphans/2026-01-02/{name}"
    store.move(name, orphan)
    assert store.stat(name) is None and store.folders("orphans") == ["2026-01-02"]
    assert [file.name for file in store.files("orphans/2026-01-02")] == [orphan]
    assert [file.name for file in store.files("assets")] == [response]
    with pytest.raises(FileNotFoundError):
        store.local(name).open("rb")
    store.move(orphan, name)
    assert store.local(name).read_bytes() == b"deleted"


def test_a_deleted_object_cannot_be_opened(store: Store, received: Received) -> None:
    name = put(store, received, b"gone")
    assert store.delete(name) is True
    assert store.stat(name) is None
    with pytest.raises(FileNotFoundError):
        store.local(name).open("rb")


def test_a_folder_is_deleted_with_all_in_it(store: Store, received: Received) -> None:
    names = [put(store, received, bytes([65 + at])) for at in range(3)]
    store.move(names[0], f"orphans/2026-01-02/{names[0]}")
    store.move(names[1], f"orphans/2026-01-03/{names[1]}")
    store.delete_folder("orphans/2026-01-02")
    assert store.folders("orphans") == ["2026-01-03"]
    assert store.stat(names[2]) is not None


def test_a_working_store_passes_its_check_without_leftovers(store: Store) -> None:
    store.check()
    assert list(store.files("check")) == []

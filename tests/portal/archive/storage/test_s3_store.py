"""A bucket that breaks off, sends rubbish, is away; and the local copies of what it holds."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from portal.archive.storage import s3_store
from portal.archive.storage.s3_store import S3Settings, S3Store
from portal.archive.storage.store import StoreAwayError
from portal.core.errors import StorageFullError
from tests.portal.archive.storage.conftest import Door
from tests.threads import at_once

pytestmark = pytest.mark.slow

Received = Callable[[bytes], tuple[Path, str]]
DATA = bytes(range(256)) * 8_192  # 2 MiB: more than one piece of a download


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_store, "WAIT_S", 0.0)


@pytest.fixture
def held(s3: S3Store, received: Received) -> str:
    """A file that is only in the bucket."""
    path, name = received(DATA)
    s3.send(path, name)
    return name


def copies(tmp_path: Path) -> list[Path]:
    return [
        path
        for path in (tmp_path / "fetched").rglob("*")
        if path.is_file() and path.name != ".room"
    ]


def test_a_file_is_fetched_once_and_then_opened_here(s3: S3Store, held: str, door: Door) -> None:
    first = s3.local(held)
    assert first.read_bytes() == DATA
    assert s3.local(held) == first
    assert len(door.downloads) == 1


def test_an_uploaded_file_needs_no_download(s3: S3Store, received: Received, door: Door) -> None:
    path, name = received(DATA)
    s3.put(path, name)
    assert s3.local(name).read_bytes() == DATA
    assert door.downloads == []


def test_a_broken_download_resumes(s3: S3Store, held: str, door: Door) -> None:
    door.faults = [lambda data: data[:700_000], lambda data: data[:500_000]]
    assert s3.local(held).read_bytes() == DATA
    starts = [int(requested.removeprefix("bytes=").rstrip("-")) for requested in door.downloads]
    assert len(starts) == 3 and starts[0] == 0 < starts[1] < starts[2] < len(DATA)


def test_a_download_that_always_breaks_fails_without_files(
    s3: S3Store, held: str, door: Door, tmp_path: Path
) -> None:
    door.faults = [lambda data: b""] * 20
    with pytest.raises(StoreAwayError, match="answer"):
        s3.local(held)
    assert copies(tmp_path) == []
    door.faults = []
    assert s3.local(held).read_bytes() == DATA


def test_bytes_of_another_hash_are_refused(
    s3: S3Store, held: str, door: Door, tmp_path: Path
) -> None:
    door.faults = [lambda data: data[:-1] + b"?"]
    with pytest.raises(StoreAwayError, match="damaged"):
        s3.local(held)
    assert copies(tmp_path) == []


def test_concurrent_readers_share_one_download(s3: S3Store, held: str, door: Door) -> None:
    begin, result = threading.Barrier(8), []

    def fetch() -> None:
        begin.wait()
        result.append(s3.local(held).read_bytes())

    at_once(fetch, 8)
    assert result == [DATA] * 8
    assert len(door.downloads) == 1


def test_a_waiter_retries_a_download_that_failed(s3: S3Store, held: str, door: Door) -> None:
    door.faults = [lambda data: data[:-1] + b"?"]
    begin, ended = threading.Barrier(2), []

    def fetch() -> None:
        begin.wait()
        try:
            ended.append(s3.local(held).read_bytes() == DATA)
        except StoreAwayError:
            ended.append(False)

    at_once(fetch)
    assert sorted(ended) == [False, True]


def test_an_unreachable_server_is_named_and_no_file_is_lost(
    bucket: S3Settings, tmp_path: Path, received: Received
) -> None:
    away = S3Store(replace(bucket, endpoint="http://127.0.0.1:9"), tmp_path / "fetched")
    path, name = received(DATA)
    requested: list[Callable[[], object]] = [
        lambda: away.put(path, name),
        lambda: away.stat(name),
        lambda: away.local(name),
        lambda: away.delete(name),
        lambda: list(away.files("assets")),
        lambda: away.move(name, "orphans/x"),
        lambda: away.read("identity.json"),
        away.check,
    ]
    for fetch in requested:
        with pytest.raises(StoreAwayError, match="answer") as caught:
            fetch()
        assert caught.value.status == 503
    assert path.read_bytes() == DATA


def test_a_copy_is_read_while_the_server_is_down(
    s3: S3Store, bucket: S3Settings, held: str, tmp_path: Path
) -> None:
    s3.local(held)
    away = S3Store(replace(bucket, endpoint="http://127.0.0.1:9"), tmp_path / "fetched")
    assert away.local(held).read_bytes() == DATA


def test_a_missing_bucket_is_no_missing_file(bucket: S3Settings, tmp_path: Path) -> None:
    store = S3Store(replace(bucket, bucket="not-made"), tmp_path / "fetched")
    with pytest.raises(StoreAwayError) as caught:
        store.check()
    assert "NoSuchBucket" in str(caught.value.__cause__)


def test_a_full_cache_evicts_the_least_recently_used(
    bucket: S3Settings, tmp_path: Path, received: Received, door: Door
) -> None:
    store = S3Store(replace(bucket, cache_bytes=2_500), tmp_path / "fetched")
    names = []
    for letter in (b"a", b"b", b"c"):
        path, name = received(letter * 1_000)
        store.send(path, name)
        names.append(name)
    first, second, third = names
    for name in (first, second, first, third):
        store.local(name)
    assert {path.name for path in copies(tmp_path)} == {
        first.rsplit("/", 1)[-1],
        third.rsplit("/", 1)[-1],
    }
    assert len(door.downloads) == 3
    store.local(second)
    assert len(door.downloads) == 4


def test_a_dropped_copy_that_is_open_can_be_read_to_its_end(
    bucket: S3Settings, tmp_path: Path, received: Received
) -> None:
    store = S3Store(replace(bucket, cache_bytes=1_500), tmp_path / "fetched")
    (path, name), (other, another) = received(b"a" * 1_000), received(b"b" * 1_000)
    store.send(path, name)
    with store.local(name).open("rb") as open_file:
        store.put(other, another)
        assert [copy.name for copy in copies(tmp_path)] == [another.rsplit("/", 1)[-1]]
        assert open_file.read() == b"a" * 1_000


def test_a_file_larger_than_the_cache_is_downloaded(
    bucket: S3Settings, tmp_path: Path, received: Received
) -> None:
    store = S3Store(replace(bucket, cache_bytes=1_500), tmp_path / "fetched")
    (small, name), (large, another) = received(b"a" * 1_000), received(b"b" * 4_000)
    store.put(small, name)
    store.put(large, another)  # sent; not kept here, where it would push out all others
    assert [copy.name for copy in copies(tmp_path)] == [name.rsplit("/", 1)[-1]]
    assert store.local(another).read_bytes() == b"b" * 4_000
    assert [copy.name for copy in copies(tmp_path)] == [another.rsplit("/", 1)[-1]]


def test_without_room_on_the_disk_a_file_is_refused_and_the_others_stay_in_the_bucket(
    s3: S3Store, held: str, received: Received, settings: Any, tmp_path: Path
) -> None:
    path, name = received(b"before")
    s3.put(path, name)
    settings.TESSERA_STORAGE = tmp_path
    settings.TESSERA_STORAGE_FLOOR_BYTES = 2**62
    with pytest.raises(StorageFullError):
        s3.local(held)
    assert copies(tmp_path) == []  # they made room, in vain
    settings.TESSERA_STORAGE_FLOOR_BYTES = 1
    assert s3.local(name).read_bytes() == b"before"


def test_a_partial_download_of_a_dead_process_starts_over(
    s3: S3Store, held: str, tmp_path: Path
) -> None:
    part = (tmp_path / "fetched" / held).with_name(held.rsplit("/", 1)[-1] + ".part")
    part.parent.mkdir(parents=True)
    part.write_bytes(b"?" * 3 * len(DATA))
    assert s3.local(held).read_bytes() == DATA
    assert [path.name for path in copies(tmp_path)] == [held.rsplit("/", 1)[-1]]


def test_copies_of_remotely_deleted_objects_are_removed(
    s3: S3Store, bucket: S3Settings, held: str, received: Received, tmp_path: Path
) -> None:
    path, stored = received(b"kept")
    s3.put(path, stored)
    s3.local(held)
    S3Store(bucket, tmp_path / "of another machine").delete(held)
    assert s3.tidy() == 1
    assert [copy.name for copy in copies(tmp_path)] == [stored.rsplit("/", 1)[-1]]


LARGE = 20 * 2**20 + 7  # three parts: what is above 5 GB differs only in their number


def test_a_large_file_is_sent_copied_and_fetched_in_parts(
    s3: S3Store, received: Received, door: Door, tmp_path: Path
) -> None:
    """No request may hold more than 5 GB: neither of an upload nor of a copy on the server."""
    data = random.Random(7).randbytes(LARGE)
    path, name = received(data)
    s3.send(path, name)
    assert sorted(door.parts) == [1, 2, 3]
    target = f"orphans/2026-01-02/{name}"
    s3.move(name, target)
    assert sorted(door.parts) == [1, 1, 2, 2, 3, 3]
    assert s3.stat(name) is None
    stored = s3.stat(target)
    assert stored is not None and stored.size_bytes == LARGE
    assert hashlib.sha256(s3.local(target).read_bytes()).hexdigest() == name.rsplit("/", 1)[-1]


def start_upload(s3: S3Store, name: str) -> Any:
    """Start a multipart upload and leave it after the first part, like a killed process."""
    client: Any = s3._client
    where = {"Bucket": s3._bucket, "Key": name}
    upload = client.create_multipart_upload(**where)
    client.upload_part(**where, UploadId=upload["UploadId"], PartNumber=1, Body=b"x" * 5 * 2**20)
    return upload


def unfinished(s3: S3Store) -> list[str]:
    client: Any = s3._client
    pending = client.list_multipart_uploads(Bucket=s3._bucket).get("Uploads", ())
    return sorted(item["Key"] for item in pending)


def test_parts_of_deleted_objects_are_deleted_too(s3: S3Store, held: str) -> None:
    start_upload(s3, held)
    start_upload(s3, "assets/other")
    s3.delete(held)
    assert unfinished(s3) == ["assets/other"]


def test_incomplete_uploads_are_removed_after_a_day(
    s3: S3Store, held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_upload(s3, "assets/half")
    assert timedelta(days=1) == s3_store.PARTS_WAIT
    # moto says of every upload that it began in 2010
    monkeypatch.setattr(s3_store, "PARTS_WAIT", timedelta(days=100 * 365))
    s3.tidy()
    assert unfinished(s3) == ["assets/half"]
    monkeypatch.setattr(s3_store, "PARTS_WAIT", timedelta(seconds=-60))
    s3.tidy()
    assert unfinished(s3) == []
    assert s3.stat(held) is not None

"""Disk space: the floor, the reserve, and errors of a full disk as opposed to bugs."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from portal.core import disk, housekeeping
from portal.core.disk import is_disk_full, require_room
from portal.core.errors import StorageFullError
from portal.core.middleware import PortalErrorMiddleware


class _Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``room(free, total)``: what every volume says from now on."""

    def set_free(free: int, total: int = 10**12) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: _Usage(total, total - free, free))

    return set_free


def test_a_write_below_the_free_space_limit_is_refused(room: Any, settings: Any) -> None:
    settings.TESSERA_STORAGE_FLOOR_BYTES = 1000
    room(free=5000)
    require_room(4000)
    with pytest.raises(StorageFullError) as refused:
        require_room(4001)
    assert refused.value.details == {"room_bytes": 4000}
    room(free=1000)
    with pytest.raises(StorageFullError):
        require_room()
    assert not disk.has_room()


@pytest.mark.parametrize(("total", "floor"), [(10**12, 2 * 2**30), (10**9, 5 * 10**7)])
def test_the_floor_is_two_gib_or_a_share_of_a_small_volume(
    room: Any, settings: Any, total: int, floor: int
) -> None:
    settings.TESSERA_STORAGE_FLOOR_BYTES = 0
    room(free=total, total=total)
    assert disk.floor_bytes() == floor


def _raised_from(cause: Exception) -> Exception:
    try:
        try:
            raise cause
        except Exception as error:
            raise RuntimeError("while writing") from error
    except RuntimeError as error:
        return error


@pytest.mark.parametrize(
    ("error", "is_full"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), True),
        (OperationalError("database or disk is full"), True),
        (OperationalError('could not extend file "base/1": No space left on device'), True),
        (_raised_from(OSError(errno.ENOSPC, "No space left on device")), True),
        (StorageFullError("full"), True),
        (OSError(errno.EACCES, "Permission denied"), False),
        (OperationalError("database is locked"), False),
        (ValueError("disk is full"), False),
        (None, False),
    ],
)
def test_a_full_disk_is_distinguished_from_other_errors(error: Exception, is_full: bool) -> None:
    assert is_disk_full(error) is is_full


def test_a_vague_error_of_sqlite_counts_as_full_without_free_space(room: Any) -> None:
    error = OperationalError("disk I/O error")
    room(free=10**9)
    assert not is_disk_full(error)
    room(free=0)
    assert is_disk_full(error)


def test_the_reserve_is_made_given_back_and_made_again(
    storage: Path, settings: Any, room: Any
) -> None:
    settings.TESSERA_RESERVE_BYTES, settings.TESSERA_STORAGE_FLOOR_BYTES = 2**20, 2**20
    path = disk.reserve_path()
    assert path == storage / "tessera.reserve"  # the tests' database is no file
    assert disk.reserve_keep()
    assert path.stat().st_blocks * 512 >= 2**20  # held in fact, not a hole
    room(free=disk.LAST_BYTES - 1)
    assert not disk.reserve_keep()
    assert not path.exists()
    room(free=2 * disk.LAST_BYTES + 2**20 - 1)
    assert not disk.reserve_keep()  # not at the cost of the floor
    room(free=10**9)
    assert disk.reserve_keep()


def test_the_reaper_looks_after_the_reserve(storage: Path, settings: Any) -> None:
    settings.TESSERA_RESERVE_BYTES, settings.TESSERA_STORAGE_FLOOR_BYTES = 2**20, 2**20
    (keep,) = housekeeping.EACH_PASS.all("disk reserve")
    keep()
    assert disk.reserve_path().exists()


@pytest.mark.parametrize(
    "raised", [OSError(errno.ENOSPC, "full"), OperationalError("disk is full")]
)
def test_a_view_that_finds_the_disk_full_answers_507(raised: Exception, storage: Path) -> None:
    request = RequestFactory().post("/api/v1/rois/")
    response = PortalErrorMiddleware(_never).process_exception(request, raised)
    assert response is not None
    assert (response.status_code, b"storage-full" in response.content) == (507, True)


@pytest.mark.django_db
def test_a_full_disk_outside_of_views_answers_507_too(
    client: Client, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.contrib.sessions.backends.db import SessionStore

    def full(*_: Any) -> None:
        raise OperationalError("database or disk is full")

    monkeypatch.setattr(SessionStore, "load", full)
    client.raise_request_exception = False
    client.cookies["sessionid"] = "x" * 32
    assert client.get("/cases/").status_code == 507


def _never(request: HttpRequest) -> HttpResponse:
    raise NotImplementedError

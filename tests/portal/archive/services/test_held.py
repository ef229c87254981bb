"""Pieces that the front writes: what it may write, and what of it counts afterwards."""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from portal.archive import services
from portal.archive.models import Case, Upload
from portal.archive.services.transfers import ChecksumError, UploadBusyError, writing
from portal.archive.services.transfers.held import Allowed, Held, Landed
from portal.archive.storage import incoming_path
from portal.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    StorageFullError,
)
from portal.jobs.models import Job
from portal.labs.models import User
from tests.portal.archive.support import picture

pytestmark = pytest.mark.django_db
CONTENT = picture()
SIZE = len(CONTENT)


@pytest.fixture
def upload(case: Case, annotator: User, storage: Path) -> Upload:
    return services.upload_begin(case=case, user=annotator, filename="a.png", size_bytes=SIZE)


def _ask(upload: Upload, user: User, offset: int = 0, **given: Any) -> Allowed | None:
    held = Held(given.pop("rest", SIZE - offset), given.pop("landed", None))
    held = Held.of(held.line())  # as it comes over the socket
    return services.upload_append_held(upload=upload, offset=offset, held=held, user=user, **given)


def _write(upload: Upload, begin: int, end: int, **more: Any) -> Landed:
    """As the front does."""
    path = incoming_path(str(upload.pk))
    with path.open("r+b") as file:
        file.seek(begin)
        file.write(CONTENT[begin:end])
    return Landed(begin, end, path.stat().st_mtime_ns, **more)


def test_a_piece_in_stretches_becomes_a_whole(
    upload: Upload, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "CERTAIN_EVERY_BYTES", SIZE // 2 + 1)
    first = _ask(upload, annotator)
    assert first == Allowed(0, SIZE // 2 + 1) and upload.received_bytes == 0
    landed = _write(upload, 0, first.end)
    second = _ask(upload, annotator, rest=SIZE - first.end, landed=landed)
    assert second == Allowed(first.end, SIZE) and upload.received_bytes == first.end
    assert not Job.objects.exists()
    assert _ask(upload, annotator, rest=0, landed=_write(upload, first.end, SIZE)) is None
    assert (upload.received_bytes, upload.state) == (SIZE, "checking")
    assert Job.objects.get().kind == "upload_finish"
    assert incoming_path(str(upload.pk)).read_bytes() == CONTENT


def test_what_is_told_twice_counts_once(upload: Upload, annotator: User) -> None:
    landed = _write(upload, 0, 100)
    _ask(upload, annotator, rest=0, landed=landed)
    with pytest.raises(ConflictError) as wrong:
        _ask(upload, annotator, rest=0, landed=landed)
    assert wrong.value.details == {"offset": 100} and upload.received_bytes == 100


def test_leftovers_of_one_that_died_are_not_built_upon(upload: Upload, annotator: User) -> None:
    """The file ends where the stretch begins: so the front sees whether somebody else wrote."""
    _write(upload, 0, 500)
    assert _ask(upload, annotator) == Allowed(0, SIZE)
    assert incoming_path(str(upload.pk)).stat().st_size == 0


@pytest.mark.parametrize("change", ["shorter", "longer", "time", "failed"])
def test_what_somebody_else_wrote_since_is_not_counted(
    upload: Upload, annotator: User, change: str
) -> None:
    landed, path = _write(upload, 0, 100), incoming_path(str(upload.pk))
    if change == "failed":
        landed = Landed(0, 0, failed="busy")
    elif change == "time":
        os.utime(path, ns=(1, landed.mtime_ns + 1))
    else:
        os.truncate(path, 99 if change == "shorter" else 101)
        os.utime(path, ns=(1, landed.mtime_ns))
    with pytest.raises(UploadBusyError):
        _ask(upload, annotator, rest=0, landed=landed)
    upload.refresh_from_db()
    assert upload.received_bytes == 0


@pytest.mark.parametrize("landed", [None, Landed(0, 0)])
def test_while_somebody_else_writes_it_is_busy(
    upload: Upload, annotator: User, landed: Landed | None
) -> None:
    with incoming_path(str(upload.pk)).open("r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UploadBusyError):
            _ask(upload, annotator, landed=landed)


def test_another_offset_and_more_than_announced_are_refused_before_a_byte(
    upload: Upload, annotator: User
) -> None:
    with pytest.raises(ConflictError):
        _ask(upload, annotator, 5)
    with pytest.raises(InvalidInputError, match="more arrived"):
        _ask(upload, annotator, rest=SIZE + 1)


def test_who_may_not_send_may_not_write(upload: Upload, viewer: User) -> None:
    for landed in (None, _write(upload, 0, 100)):
        with pytest.raises(ForbiddenError):
            _ask(upload, viewer, landed=landed)
    assert upload.received_bytes == 0


def test_of_a_piece_that_broke_off_counts_what_came(upload: Upload, annotator: User) -> None:
    landed = _write(upload, 0, 100, failed="broken")
    with pytest.raises(InvalidInputError, match="broke off"):
        _ask(upload, annotator, rest=SIZE - 100, landed=landed)
    upload.refresh_from_db()
    assert upload.received_bytes == 100


@pytest.mark.parametrize("how", ["damaged", "broken"])
def test_of_a_damaged_piece_nothing_is_kept(upload: Upload, annotator: User, how: str) -> None:
    right = hashlib.sha1(CONTENT[:100], usedforsecurity=False)
    said = services.Checksum("sha1", right.digest())
    assert _ask(upload, annotator, rest=100, checksum=said) == Allowed(0, 100, "sha1")
    if how == "damaged":
        landed = _write(upload, 0, 100, digest="0" * 40)
        with pytest.raises(ChecksumError, match=right.hexdigest()):
            _ask(upload, annotator, rest=0, landed=landed, checksum=said)
    else:
        with pytest.raises(InvalidInputError, match="broke off"):
            _ask(
                upload,
                annotator,
                rest=50,
                landed=_write(upload, 0, 50, failed="broken"),
                checksum=said,
            )
    upload.refresh_from_db()
    assert (upload.received_bytes, incoming_path(str(upload.pk)).stat().st_size) == (0, 0)
    landed = _write(upload, 0, 100, digest=right.hexdigest())
    _ask(upload, annotator, rest=0, landed=landed, checksum=said)
    assert upload.received_bytes == 100


def test_a_piece_to_be_hashed_is_one_stretch(
    upload: Upload, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "CERTAIN_EVERY_BYTES", 10)
    said = services.Checksum("sha1", b"")
    assert _ask(upload, annotator, checksum=said) == Allowed(0, SIZE, "sha1")


def test_a_full_disk_gives_the_transfer_up(upload: Upload, annotator: User) -> None:
    with pytest.raises(StorageFullError):
        _ask(upload, annotator, landed=Landed(0, 0, failed="full"))
    assert not Upload.objects.exists()
    assert not incoming_path(str(upload.pk)).exists()

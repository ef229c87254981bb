"""The file of a transfer, written by one request at a time; its row never promises more bytes."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import RawIOBase

from portal.archive.models import Upload, UploadState
from portal.archive.selectors.intake import asset_received
from portal.archive.storage import files as storage
from portal.core.disk import full_disk_refused, require_room
from portal.core.errors import InvalidInputError, PortalError, StorageFullError

CERTAIN_EVERY_BYTES = 128 * 2**20
"""Bytes between syncs to the disk: a crash costs at most this much. The largest piece sent by a
page is synced once."""
WRITE_BACK_BYTES = 8 * 2**20
"""Bytes written between two starts of write-back, so that the final sync waits little."""
CHECKSUMS = ("sha1", "sha256", "md5")


class UploadBusyError(PortalError):
    """Another request is writing to this transfer."""

    status, code, title = 423, "upload-busy", "Another request is sending to this upload"


class ChecksumError(PortalError):
    """A piece arrived damaged and was discarded. The status is that of tus 1.0.0."""

    status, code, title = 460, "checksum-mismatch", "The piece arrived damaged"


@dataclass(frozen=True, slots=True)
class Checksum:
    """Expected digest of a piece, and its algorithm from ``CHECKSUMS``."""

    algorithm: str
    digest: bytes


@contextmanager
def transfer_writing(upload: Upload) -> Iterator[RawIOBase]:
    """Open the upload's file under an exclusive lock, which the kernel releases if the process
    dies.

    ``upload`` is read again; its offset never exceeds the file's size.

    Raises:
        UploadBusyError: Another request has the lock.
    """
    path = storage.incoming_path(str(upload.pk))
    with full_disk_refused():
        number = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT, 0o666)
    with os.fdopen(number, "r+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UploadBusyError(
                "Another request is still sending to this upload. Try again in a moment.",
                details={"retry_after_s": 2},
            ) from error
        upload.refresh_from_db()
        _no_more_than_there_is(file, upload)
        yield file


def _no_more_than_there_is(file: RawIOBase, upload: Upload) -> None:
    """A restored database may promise bytes that the folder of transfers does not have."""
    size_bytes = os.fstat(file.fileno()).st_size
    if size_bytes < upload.received_bytes and upload.state == UploadState.RECEIVING:
        upload.received_bytes = size_bytes
        upload.save(update_fields=["received_bytes", "updated_at"])


def transfer_write(
    file: RawIOBase, upload: Upload, chunks: Iterable[bytes], checksum: Checksum | None
) -> None:
    """Add a piece where the last one ended.

    The caller saves ``received_bytes``: with the last piece, the job is written in the same step.

    Raises:
        InvalidInputError: more bytes than announced.
        ChecksumError: a damaged piece.
        StorageFullError: no room is left; nothing is noted.
    """
    begin = upload.received_bytes
    hashed = hashlib.new(checksum.algorithm, usedforsecurity=False) if checksum else None
    file.truncate(begin)
    file.seek(begin)
    end = written_back = begin
    try:
        with full_disk_refused():
            for chunk in chunks:
                if end + len(chunk) > upload.size_bytes:
                    raise InvalidInputError(
                        f"This upload was announced with {upload.size_bytes} bytes; more arrived.",
                        code="upload-size",
                    )
                if end % storage.ROOM_EVERY_BYTES < len(chunk):
                    require_room()
                storage.write_whole(file, chunk)
                end += len(chunk)
                if end - written_back >= WRITE_BACK_BYTES:
                    _write_back(file, written_back, end)
                    written_back = end
                if hashed is not None:
                    hashed.update(chunk)
                elif end - upload.received_bytes >= CERTAIN_EVERY_BYTES and end < upload.size_bytes:
                    _certain(file, upload, end)
    except StorageFullError:
        raise
    except BaseException:
        # An interrupted piece counts as far as it was received, unless it has a hash to check.
        _certain(file, upload, begin if checksum else end)
        raise
    if checksum and hashed:
        _require_undamaged(file, begin, checksum, hashed.hexdigest())
    _sync(file, end)
    upload.received_bytes = end


def _require_undamaged(file: RawIOBase, begin: int, checksum: Checksum, digest: str) -> None:
    if digest != checksum.digest.hex():
        file.truncate(begin)
        raise ChecksumError(
            f"The piece that begins at byte {begin} arrived damaged: its {checksum.algorithm} is "
            f"{digest}, not {checksum.digest.hex()}. Send it again."
        )


def _write_back(file: RawIOBase, begin: int, end: int) -> None:
    """Start writing a byte range to the disk and release it from the page cache."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), begin, end - begin, os.POSIX_FADV_DONTNEED)


def _sync(file: RawIOBase, end: int) -> None:
    file.truncate(end)
    with full_disk_refused():
        os.fsync(file.fileno())


def _certain(file: RawIOBase, upload: Upload, end: int) -> None:
    """Bring what came to the disk, then note it: the row never promises more than the file has."""
    _sync(file, end)
    upload.received_bytes = end
    upload.save(update_fields=["received_bytes", "updated_at"])


def has_content(upload: Upload) -> bool:
    """Return whether the lab has these bytes; what another lab has is never revealed."""
    if not upload.sha256:
        return False
    if asset_received(upload.lab_id, upload.sha256) is not None:
        return True
    name = storage.asset_name(upload.lab_id, upload.sha256)  # placed, and no row written yet
    stored = storage.the_store().stat(name)
    return stored is not None and stored.size_bytes == upload.size_bytes


def bytes_drop(names: Iterable[str]) -> None:
    """Delete the files of transfers, by the ids of their rows."""
    for name in names:
        storage.incoming_path(name).unlink(missing_ok=True)

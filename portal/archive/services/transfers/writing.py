"""The file of a transfer, written by one request at a time; its row never promises more bytes."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import RawIOBase

from portal.archive import storage
from portal.archive.models import Upload, UploadState
from portal.archive.selectors.intake import asset_received
from portal.archive.services.transfers.held import BUSY, FULL, Allowed, Landed
from portal.core.disk import MESSAGE, full_disk_refused, require_room
from portal.core.errors import InvalidInputError, PortalError, StorageFullError

CERTAIN_EVERY_BYTES = 128 * 2**20
"""How often a piece is brought to the disk and noted: a crash costs at most this much. The largest
piece of a page is noted once."""
CHECKSUMS = ("sha1", "sha256", "md5")


class UploadBusyError(PortalError):
    """Another request is writing to this transfer."""

    status, code, title = 423, "upload-busy", "Another request is sending to this upload"


class ChecksumError(PortalError):
    """A piece arrived damaged. Nothing of it was kept. The status is that of tus 1.0.0."""

    status, code, title = 460, "checksum-mismatch", "The piece arrived damaged"


@dataclass(frozen=True, slots=True)
class Checksum:
    """What a piece must hash to: one of ``CHECKSUMS``, and the digest."""

    algorithm: str
    digest: bytes


@contextmanager
def transfer_writing(upload: Upload) -> Iterator[RawIOBase]:
    """The transfer's file, held by this request alone; released by the kernel if it dies.

    ``upload`` is read again, and promises no more than the file has.
    """
    with file_held(str(upload.pk), os.O_CREAT) as file:
        upload.refresh_from_db()
        _no_more_than_there_is(file, upload)
        yield file


@contextmanager
def file_held(name: str, flags: int = 0) -> Iterator[RawIOBase]:
    """A transfer's file, open for writing and locked. Its times stay as they are.

    Raises:
        UploadBusyError: somebody else holds it. FileNotFoundError: without ``O_CREAT``.
    """
    with full_disk_refused():
        number = os.open(storage.incoming_path(name), os.O_RDWR | os.O_CLOEXEC | flags, 0o666)
    with os.fdopen(number, "r+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise busy() from error
        yield file


def busy() -> UploadBusyError:
    """Somebody else holds the file."""
    return UploadBusyError(
        "Another request is still sending to this upload. Try again in a moment.",
        details={"retry_after_s": 2},
    )


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
        InvalidInputError: more bytes than announced. ChecksumError: a damaged piece.
        StorageFullError: no room is left; nothing is noted.
    """
    begin = upload.received_bytes
    hashed = hashlib.new(checksum.algorithm, usedforsecurity=False) if checksum else None
    file.truncate(begin)
    file.seek(begin)
    end = begin
    try:
        with full_disk_refused():
            for chunk in chunks:
                if end + len(chunk) > upload.size_bytes:
                    raise too_many(upload)
                if end % storage.ROOM_EVERY_BYTES < len(chunk):
                    require_room()
                storage.write_whole(file, chunk)
                end += len(chunk)
                if hashed is not None:
                    hashed.update(chunk)
                elif end - upload.received_bytes >= CERTAIN_EVERY_BYTES and end < upload.size_bytes:
                    _certain(file, upload, end)
    except StorageFullError:
        raise
    except BaseException:
        # A piece that broke off is good as far as it came, unless its hash was to be checked.
        _certain(file, upload, begin if checksum else end)
        raise
    if checksum and hashed:
        _require_undamaged(file, begin, checksum, hashed.hexdigest())
    _sync(file, end)
    upload.received_bytes = end


def stretch_open(file: RawIOBase, upload: Upload, rest: int, checksum: Checksum | None) -> Allowed:
    """What the front may write next of a piece, of which it still holds ``rest`` bytes.

    The file ends where the stretch begins. So the front, which takes the lock after this process
    let go of it, sees whether somebody else wrote in the meantime.

    Raises:
        InvalidInputError: more bytes than announced.
    """
    begin = upload.received_bytes
    if begin + rest > upload.size_bytes:
        raise too_many(upload)
    file.truncate(begin)
    if checksum:
        return Allowed(begin, begin + rest, checksum.algorithm)
    return Allowed(begin, begin + min(rest, CERTAIN_EVERY_BYTES))


def stretch_take(
    file: RawIOBase, upload: Upload, landed: Landed, checksum: Checksum | None
) -> None:
    """Count what the front has written and synced. The caller saves ``received_bytes``.

    Raises:
        UploadBusyError: somebody else wrote instead, or since. ChecksumError: a damaged piece.
        StorageFullError: no room is left; nothing is noted.
    """
    if landed.failed == FULL:
        raise StorageFullError(MESSAGE)
    found = os.fstat(file.fileno())
    told = (landed.begin, landed.end, landed.mtime_ns)
    if landed.failed == BUSY or told != (upload.received_bytes, found.st_size, found.st_mtime_ns):
        raise busy()
    if checksum and landed.failed:
        file.truncate(landed.begin)
    elif checksum:
        _require_undamaged(file, landed.begin, checksum, landed.digest)
        upload.received_bytes = landed.end
    else:
        upload.received_bytes = landed.end


def too_many(upload: Upload) -> InvalidInputError:
    """More came than was announced."""
    return InvalidInputError(
        f"This upload was announced with {upload.size_bytes} bytes; more arrived.",
        code="upload-size",
    )


def _require_undamaged(file: RawIOBase, begin: int, checksum: Checksum, digest: str) -> None:
    if digest != checksum.digest.hex():
        file.truncate(begin)
        raise ChecksumError(
            f"The piece that begins at byte {begin} arrived damaged: its {checksum.algorithm} is "
            f"{digest}, not {checksum.digest.hex()}. Send it again."
        )


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
    """Whether the lab has these bytes; what another lab has is never revealed."""
    if not upload.sha256:
        return False
    if asset_received(upload.lab_id, upload.sha256) is not None:
        return True
    name = storage.asset_name(upload.lab_id, upload.sha256)  # placed, and no row written yet
    found = storage.the_store().stat(name)
    return found is not None and found.size_bytes == upload.size_bytes


def bytes_drop(names: Iterable[str]) -> None:
    """Delete the files of transfers, by the ids of their rows."""
    for name in names:
        storage.incoming_path(name).unlink(missing_ok=True)

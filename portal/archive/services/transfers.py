"""Files that arrive in pieces: whoever of the two dies meanwhile, the other goes on from there.

``upload_begin`` announces a file, ``upload_append`` takes its pieces, and the last byte submits the
job ``upload_finish``, which checks the file and makes a slide or a video of it. Of a large file,
several parts may arrive at once (``is_part``), which ``upload_join`` makes one whole of.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from io import RawIOBase
from pathlib import Path
from typing import Any

from django.db import transaction

from ml.imaging.formats.sniff import FileKind
from portal.archive import storage
from portal.archive.models import Case, Upload, UploadState
from portal.archive.rules import KEPT, require_edit
from portal.archive.services.assets import asset_placing
from portal.archive.services.items import ItemReceived, item_create
from portal.archive.services.uploads import content_kind, name_clean, upload_admit, upload_keep
from portal.core.disk import full_disk_refused, require_room
from portal.core.errors import ConflictError, InvalidInputError, PortalError, StorageFullError
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import User

FINISH_KIND = "upload_finish"
CERTAIN_EVERY_BYTES = 64 * 2**20
"""How often a piece is brought to the disk and noted: a crash costs at most so much."""
MOST_PARTS = 64  # of one file: no client sends more than a few at once
CHECKSUMS = ("sha1", "sha256", "md5")
Progress = Callable[[int, int, str], None]


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


def upload_begin(
    *,
    case: Case,
    filename: str,
    size_bytes: int,
    user: User,
    name: str = "",
    sha256: str = "",
    is_part: bool = False,
) -> Upload:
    """Open a transfer. Pieces follow with ``upload_append``.

    Args:
        name: the title of the slide or video; the file's name where it is empty.
        sha256: of the whole file, where the sender knows it. If the lab has these bytes already,
            nothing needs to be sent: the transfer is complete at once.
        is_part: of a file that arrives in several transfers at once.
    Raises:
        InvalidInputError: an empty file, or no SHA-256.
    """
    if size_bytes < 1:
        raise InvalidInputError("The file is empty.", code="empty-file")
    sha256 = sha256.lower()
    if sha256 and (len(sha256) != 64 or set(sha256) - set("0123456789abcdef")):
        raise InvalidInputError("sha256: expected 64 hexadecimal digits.")
    upload_admit(case=case, user=user, size_bytes=size_bytes)
    upload = Upload(
        lab=case.lab,
        case=case,
        filename=name_clean(filename),
        name=name_clean(name) if name else "",
        size_bytes=size_bytes,
        sha256=sha256,
        is_part=is_part,
        created_by=user,
    )
    if sha256 and not is_part and _has_content(upload):
        upload.received_bytes = size_bytes
        with transaction.atomic():
            upload.save()
            _submit_finish(upload, user)
        return upload
    storage.incoming_path(str(upload.pk)).touch()
    upload.save()
    return upload


def upload_join(
    *, parts: Sequence[Upload], filename: str, user: User, name: str = "", sha256: str = ""
) -> Upload:
    """A transfer whose bytes are those of complete parts, in this order. Submits its finish.

    Raises:
        InvalidInputError: none or too many, one twice, not parts, or of several cases.
        ConflictError: a part is not complete, or belongs to another whole already.
    """
    if not 1 <= len(parts) <= MOST_PARTS or len({part.pk for part in parts}) != len(parts):
        raise InvalidInputError(f"Name 1 to {MOST_PARTS} parts, each once.", code="upload-parts")
    if not all(part.is_part for part in parts) or len({part.case_id for part in parts}) > 1:
        raise InvalidInputError("Name parts of one case only.", code="upload-parts")
    case = parts[0].case
    require_edit(user, case.lab_id)
    size_bytes = sum(part.size_bytes for part in parts)
    storage.require_size(size_bytes)
    with transaction.atomic():
        whole = Upload.objects.create(
            lab=case.lab,
            case=case,
            filename=name_clean(filename),
            name=name_clean(name) if name else "",
            size_bytes=size_bytes,
            received_bytes=size_bytes,
            sha256=sha256.lower(),
            created_by=user,
        )
        for number, part in enumerate(parts):
            taken = Upload.objects.filter(
                pk=part.pk, whole=None, received_bytes=part.size_bytes
            ).update(whole=whole, part_number=number)
            if not taken:
                raise ConflictError(
                    f"Part {number + 1} is not complete, or part of another file.",
                    code="upload-parts",
                )
        _submit_finish(whole, user)
    return whole


def upload_append(
    *,
    upload: Upload,
    offset: int,
    chunks: Iterable[bytes],
    user: User,
    checksum: Checksum | None = None,
) -> Upload:
    """Append at ``offset``, which must be where the last piece ended. Keeps what arrived.

    With the last byte the job is submitted that checks the whole.

    Raises:
        ConflictError: another offset is due (``details["offset"]``), or it is complete.
        UploadBusyError: another request is writing to it.
        ChecksumError: the piece is damaged; nothing of it is kept.
        StorageFullError: the disk has no room left; the transfer is discarded.
    """
    require_edit(user, upload.lab_id)
    with _writing(upload) as file:
        upload.refresh_from_db()
        _never_more_than_there_is(file, upload)
        if upload.state != UploadState.RECEIVING or offset != upload.received_bytes:
            raise ConflictError(
                f"The next piece of this upload begins at byte {upload.received_bytes},"
                f" not {offset}.",
                code="upload-offset",
                details={"offset": upload.received_bytes},
            )
        try:
            _append(file, upload, chunks, checksum)
        except StorageFullError:
            upload_discard(upload=upload)  # what cannot be finished must not hold the room
            raise
    if upload.received_bytes == upload.size_bytes and not upload.is_part:
        with transaction.atomic():
            _submit_finish(upload, user)
    return upload


def upload_finish(*, upload: Upload, progress: Progress) -> tuple[Path | None, FileKind]:
    """Check a complete transfer: join its parts, hash it, look what it is.

    Everything here may be done twice. ``upload_store`` follows.

    Returns:
        The file, to be placed, or None where the store has its bytes; and what its content is.
    Raises:
        InvalidInputError: another hash than announced, or no kind Tessera opens.
    """
    path = storage.incoming_path(str(upload.pk))
    if upload.parts.exists():
        _join(path, upload, progress)
    if not path.exists() and _has_content(upload):
        stored = storage.asset_path(upload.lab_id, upload.sha256)
        return None, content_kind(stored, filename=upload.filename)
    announced, upload.sha256 = upload.sha256, _sha256(path, upload.size_bytes, progress)
    if announced and announced != upload.sha256:
        raise InvalidInputError(
            f"The file arrived damaged: its SHA-256 is {upload.sha256}, not {announced}.",
            code="upload-hash",
        )
    Upload.objects.filter(pk=upload.pk).update(sha256=upload.sha256)  # a second run may need it
    return path, content_kind(path, filename=upload.filename)


@contextmanager
def upload_placing(*, upload: Upload, received: Path | None) -> Iterator[None]:
    """The transaction in which ``upload_store`` is called; its parts are dropped once it is over.

    Args:
        received: what ``upload_finish`` gave.
    """
    with asset_placing(upload.lab_id, upload.sha256, received=received):
        yield
    for part in upload.parts.all():
        upload_discard(upload=part)


def upload_store(*, upload: Upload, received: Path | None, kind: FileKind) -> ItemReceived:
    """Keep a checked transfer as an asset, and make a slide or a video of it.

    Raises:
        ConflictError: its case was deleted meanwhile, or the account that sent it.
    """
    user = upload.created_by
    if user is None or not Case.objects.filter(pk=upload.case_id).exists():
        gone = "case" if user else "account that sent it"
        raise ConflictError(f"{upload.filename}: the {gone} was deleted meanwhile.", code="gone")
    upload_keep(
        case=upload.case,
        received=received,
        sha256=upload.sha256,
        size_bytes=upload.size_bytes,
        kind=kind,
        filename=upload.filename,
        user=user,
        upload=upload,
    )
    return item_create(upload=upload, user=user, name=upload.name)


def upload_job_ended(*, payload: Mapping[str, Any]) -> None:
    """Mark the transfer of a failed or cancelled job as refused, and drop its bytes.

    Heard from ``job.ended``.
    """
    if payload.get("kind") != FINISH_KIND or payload.get("state") not in ("failed", "cancelled"):
        return
    upload = Upload.objects.filter(
        pk=payload["target_id"], state=UploadState.CHECKING, asset=None
    ).first()
    if upload is None:
        return
    upload.state = UploadState.REFUSED
    upload.error_code = str(payload.get("error_code") or payload["state"])
    upload.error_message = str(payload.get("error_message") or "The work was cancelled.")
    upload.save(update_fields=["state", "error_code", "error_message", "updated_at"])
    names = [str(upload.pk), *(str(part.pk) for part in upload.parts.all())]
    upload.parts.all().delete()
    transaction.on_commit(lambda: _drop(names), robust=True)


def upload_discard(*, upload: Upload, user: User | None = None) -> None:
    """Forget a transfer that was not stored, with its bytes and parts.

    Args:
        user: who gives it up; None for the sweep.
    Raises:
        ConflictError: it is being checked.
    """
    if user is not None:
        require_edit(user, upload.lab_id)
    names = [str(upload.pk), *(str(part.pk) for part in upload.parts.all())]
    with transaction.atomic():
        open_ones = Upload.objects.filter(pk=upload.pk, asset=None).exclude(
            state=UploadState.CHECKING
        )
        if not open_ones.delete()[0] and Upload.objects.filter(pk=upload.pk).exists():
            raise ConflictError(
                f"{upload.filename} has arrived: cancel its job, or delete what was made of it.",
                code="upload-complete",
            )
    _drop(names)


def upload_expires(upload: Upload) -> datetime:
    """Until when the sweep lets a transfer be if nothing more arrives."""
    return upload.updated_at + KEPT


@contextmanager
def _writing(upload: Upload) -> Iterator[RawIOBase]:
    """The transfer's file, held by this request alone; released by the kernel if it dies."""
    path = storage.incoming_path(str(upload.pk))
    with full_disk_refused():
        path.touch()
    with path.open("r+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UploadBusyError(
                "Another request is still sending to this upload. Try again in a moment.",
                details={"retry_after_s": 2},
            ) from error
        yield file


def _never_more_than_there_is(file: RawIOBase, upload: Upload) -> None:
    """A restored database may promise bytes that the folder of transfers does not have."""
    size_bytes = os.fstat(file.fileno()).st_size
    if size_bytes < upload.received_bytes and upload.state == UploadState.RECEIVING:
        upload.received_bytes = size_bytes
        upload.save(update_fields=["received_bytes", "updated_at"])


def _append(
    file: RawIOBase, upload: Upload, chunks: Iterable[bytes], checksum: Checksum | None
) -> None:
    begin = upload.received_bytes
    hashed = hashlib.new(checksum.algorithm, usedforsecurity=False) if checksum else None
    file.truncate(begin)
    file.seek(begin)
    end = begin
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
                if hashed is not None:
                    hashed.update(chunk)
                elif end - upload.received_bytes >= CERTAIN_EVERY_BYTES:
                    _certain(file, upload, end)
    except StorageFullError:
        raise
    except BaseException:
        # A piece that broke off is good as far as it came, unless its hash was to be checked.
        _certain(file, upload, begin if checksum else end)
        raise
    if checksum and hashed and hashed.digest() != checksum.digest:
        file.truncate(begin)
        raise ChecksumError(
            f"The piece from byte {begin} on arrived damaged: its {checksum.algorithm} is"
            f" {hashed.hexdigest()}, not {checksum.digest.hex()}. Send it again."
        )
    _certain(file, upload, end)


def _certain(file: RawIOBase, upload: Upload, end: int) -> None:
    """Bring what came to the disk, then note it: the row never promises more than the file has."""
    file.truncate(end)
    with full_disk_refused():
        os.fsync(file.fileno())
    upload.received_bytes = end
    upload.save(update_fields=["received_bytes", "updated_at"])


def _submit_finish(upload: Upload, user: User) -> Job:
    """Once: whoever finds it still receiving."""
    changed = Upload.objects.filter(pk=upload.pk, state=UploadState.RECEIVING).update(
        state=UploadState.CHECKING
    )
    if not changed:
        raise ConflictError("This upload is complete.", code="upload-offset")
    upload.state = UploadState.CHECKING
    return job_submit(
        kind=FINISH_KIND,
        args={"upload_id": str(upload.pk)},
        lab=upload.lab,
        user=user,
        target=upload,
        target_name=upload.name or upload.filename,
    )


def _has_content(upload: Upload) -> bool:
    """Whether the lab has these bytes. Nobody learns so of another lab's."""
    if not upload.sha256:
        return False
    name = storage.asset_name(upload.lab_id, upload.sha256)
    found = storage.the_store().stat(name)
    return found is not None and found.size_bytes == upload.size_bytes


def _join(path: Path, whole: Upload, progress: Progress) -> None:
    """Write the parts one after the other; begun anew where it was broken off."""
    done = 0
    with full_disk_refused(), path.open("wb") as out:
        for part in whole.parts.order_by("part_number"):
            with storage.incoming_path(str(part.pk)).open("rb") as source:
                while chunk := source.read(storage.CHUNK_BYTES):
                    out.write(chunk)
                    done += len(chunk)
                    progress(done, 2 * whole.size_bytes, "Joining the parts")
        out.flush()
        os.fsync(out.fileno())


def _sha256(path: Path, size_bytes: int, progress: Progress) -> str:
    hashed, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(storage.CHUNK_BYTES):
            hashed.update(chunk)
            done += len(chunk)
            progress(done, size_bytes, "Checking the bytes")
    return hashed.hexdigest()


def _drop(names: Iterable[str]) -> None:
    for name in names:
        storage.incoming_path(name).unlink(missing_ok=True)

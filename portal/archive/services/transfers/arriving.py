"""A file is announced, arrives in pieces or in parts that are joined, or is discarded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from django.db import transaction

from portal.archive.models import Case, Upload, UploadState
from portal.archive.rules import RETENTION, require_crate, require_edit
from portal.archive.services.quotas import quota_taking
from portal.archive.services.transfers.writing import (
    Checksum,
    bytes_drop,
    has_content,
    transfer_write,
    transfer_writing,
)
from portal.archive.services.uploads import filename_clean, upload_admit
from portal.archive.storage import files as storage
from portal.core.errors import ConflictError, InvalidInputError, StorageFullError
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import User

FINISH_KIND = "upload_finish"
MAX_PARTS_PER_FILE = 64  # of one file: no client sends more than a few at once


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
        InvalidInputError: an empty file, or a malformed SHA-256; others as ``upload_admit``.
    """
    if size_bytes < 1:
        raise InvalidInputError("The file is empty.", code="empty-file")
    sha256 = _sha256_clean(sha256)
    upload = Upload(
        lab=case.lab,
        case=case,
        filename=filename_clean(filename),
        name=filename_clean(name) if name else "",
        size_bytes=size_bytes,
        sha256=sha256,
        is_part=is_part,
        created_by=user,
    )
    with quota_taking(case.lab_id):
        upload_admit(case=case, user=user, size_bytes=size_bytes)
        is_here = bool(sha256) and not is_part and has_content(upload)
        upload.received_bytes = size_bytes if is_here else 0
        upload.save()
        if is_here:
            _submit_finish(upload, user)
        else:
            storage.incoming_path(str(upload.pk)).touch()
    return upload


def upload_join(
    *, parts: Sequence[Upload], filename: str, user: User, name: str = "", sha256: str = ""
) -> Upload:
    """A transfer whose bytes are those of complete parts, in this order. Submits its check.

    Raises:
        InvalidInputError: none or too many, one twice, not parts, or of several cases; or a
            malformed SHA-256.
        ConflictError: a part is not complete, or belongs to another whole already.
    """
    if not 1 <= len(parts) <= MAX_PARTS_PER_FILE or len({part.pk for part in parts}) != len(parts):
        raise InvalidInputError(
            f"Name 1 to {MAX_PARTS_PER_FILE} parts, each of them once.", code="upload-parts"
        )
    if not all(part.is_part for part in parts) or len({part.case_id for part in parts}) > 1:
        raise InvalidInputError("Name only parts of the same case.", code="upload-parts")
    case = parts[0].case
    if case is None:
        raise InvalidInputError("Name only parts of the same case.", code="upload-parts")
    require_edit(user, case.lab_id)
    sha256 = _sha256_clean(sha256)
    size_bytes = sum(part.size_bytes for part in parts)
    storage.require_size(size_bytes)
    with transaction.atomic():
        joined = Upload.objects.create(
            lab=case.lab,
            case=case,
            filename=filename_clean(filename),
            name=filename_clean(name) if name else "",
            size_bytes=size_bytes,
            received_bytes=size_bytes,
            sha256=sha256,
            created_by=user,
        )
        for number, part in enumerate(parts):
            is_joined = Upload.objects.filter(
                pk=part.pk, joined_upload=None, received_bytes=part.size_bytes
            ).update(joined_upload=joined, part_number=number)
            if not is_joined:
                raise ConflictError(
                    f"Part {number + 1} is not complete, or belongs to another file.",
                    code="upload-parts",
                )
        _submit_finish(joined, user)
    return joined


def _sha256_clean(sha256: str) -> str:
    """Normalized SHA-256; empty if the sender does not know it."""
    sha256 = sha256.lower()
    if sha256 and (len(sha256) != 64 or set(sha256) - set("0123456789abcdef")):
        raise InvalidInputError("sha256: expected 64 hexadecimal digits.")
    return sha256


def upload_append(
    *,
    upload: Upload,
    offset: int,
    chunks: Iterable[bytes],
    user: User,
    checksum: Checksum | None = None,
) -> Upload:
    """Append at ``offset``, which must be the number of received bytes.

    The last byte submits the job that checks the file; a crate waits for its import.

    Raises:
        ConflictError: another offset is expected (``details["offset"]``), or it is complete.
        UploadBusyError: another request is writing to it.
        ChecksumError: the piece is damaged and was discarded.
        StorageFullError: the disk has no room left; the transfer is discarded.
    """
    require_send(user, upload)
    with transfer_writing(upload) as file:
        _require_due(upload, offset)
        with _given_up_when_full(upload):
            transfer_write(file, upload, chunks, checksum)
        _note(upload, user)
    return upload


def _require_due(upload: Upload, offset: int) -> None:
    if upload.state != UploadState.RECEIVING or offset != upload.received_bytes:
        raise ConflictError(
            f"The next piece of this upload begins at byte {upload.received_bytes}, not {offset}.",
            code="upload-offset",
            details={"offset": upload.received_bytes},
        )


@contextmanager
def _given_up_when_full(upload: Upload) -> Iterator[None]:
    """Discard the transfer when the storage is full, to free its space."""
    try:
        yield
    except StorageFullError:
        upload_discard(upload=upload)
        raise


def _note(upload: Upload, user: User) -> None:
    """Save in one transaction: a row that has all its bytes has its job."""
    with transaction.atomic():
        upload.save(update_fields=["received_bytes", "updated_at"])
        is_whole = upload.received_bytes == upload.size_bytes
        if is_whole and upload.case_id is not None and not upload.is_part:
            _submit_finish(upload, user)


def upload_discard(*, upload: Upload, user: User | None = None) -> None:
    """Forget a transfer that was not stored, with its bytes and parts.

    Args:
        user: who gives it up; None for the portal itself.
    Raises:
        ConflictError: it is being checked.
    """
    if user is not None:
        require_send(user, upload)
    names = [str(upload.pk), *(str(part.pk) for part in upload.parts.all())]
    with transaction.atomic():
        open_ones = Upload.objects.filter(pk=upload.pk, asset=None).exclude(
            state=UploadState.CHECKING
        )
        if not open_ones.delete()[0] and Upload.objects.filter(pk=upload.pk).exists():
            raise ConflictError(
                f"{upload.filename} has arrived. Cancel its job, or delete what was made from it.",
                code="upload-complete",
            )
    bytes_drop(names)


def upload_expires(upload: Upload) -> datetime:
    """Time at which the sweep deletes an idle transfer."""
    return upload.updated_at + RETENTION


def require_send(user: User, upload: Upload) -> None:
    """Raise ``ForbiddenError``: annotators send files to a case, managers crates to a lab."""
    (require_crate if upload.case_id is None else require_edit)(user, upload.lab_id)


def _submit_finish(upload: Upload, user: User) -> Job:
    """Submit the check once: only for the caller that finds it still receiving."""
    changed = Upload.objects.filter(pk=upload.pk, state=UploadState.RECEIVING).update(
        state=UploadState.CHECKING
    )
    if not changed:
        raise ConflictError("This upload is complete.", code="upload-offset")
    upload.state = UploadState.CHECKING
    return upload_check(upload=upload, user=user)


def upload_check(*, upload: Upload, user: User | None) -> Job:
    """Submit the job that checks a file that has arrived."""
    return job_submit(
        kind=FINISH_KIND,
        args={"upload_id": str(upload.pk)},
        lab=upload.lab,
        user=user,
        target=upload,
        target_name=upload.name or upload.filename,
    )

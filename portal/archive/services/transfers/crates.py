"""Uploads of RO-Crates, which bring a whole case to a lab and are imported by a job.

A crate arrives in pieces like a file. The last byte does not submit the job: the sender requests
the import, and may repeat it after the cause of an error is fixed. A crate is stored until it is
imported, cancelled or swept.
"""

from __future__ import annotations

import uuid

from django.db import transaction
from django.utils import timezone

from portal.archive.models import Upload, UploadState
from portal.archive.rules import require_crate
from portal.archive.services.quotas import quota_taking, require_quota
from portal.archive.services.transfers.writing import bytes_drop
from portal.archive.services.uploads import filename_clean
from portal.archive.storage import files as storage
from portal.core.disk import require_room
from portal.core.errors import ConflictError, InvalidInputError
from portal.labs.models import Lab, User


def crate_begin(*, lab: Lab, filename: str, size_bytes: int, user: User) -> Upload:
    """Open the transfer of a crate. Pieces follow with ``upload_append``.

    The size limit of a file does not apply to a crate, only to each file in it.

    Raises:
        ForbiddenError: not a manager of the lab.
        InvalidInputError: an empty file.
        StorageFullError: no room for it on the disk, or within the lab's quota.
    """
    require_crate(user, lab.pk)
    if size_bytes < 1:
        raise InvalidInputError("The file is empty.", code="empty-file")
    upload = Upload(
        lab=lab, filename=filename_clean(filename), size_bytes=size_bytes, created_by=user
    )
    with quota_taking(lab.pk):
        require_quota(lab.pk, size_bytes)
        require_room(size_bytes)
        upload.save()
        storage.incoming_path(str(upload.pk)).touch()
    return upload


def crate_check(*, upload: Upload) -> bool:
    """Mark a crate that arrived whole as being checked; False if it is being checked already.

    Raises:
        ConflictError: it is not a crate, has not arrived, or was imported.
    """
    complete = Upload.objects.filter(pk=upload.pk, case=None, received_bytes=upload.size_bytes)
    changed = complete.filter(state__in=(UploadState.RECEIVING, UploadState.REFUSED)).update(
        state=UploadState.CHECKING, error_code="", error_message="", updated_at=timezone.now()
    )
    upload.refresh_from_db()
    if changed or (upload.state == UploadState.CHECKING and upload.case_id is None):
        return bool(changed)
    if upload.case_id is not None and upload.state == UploadState.STORED and not upload.asset_id:
        raise ConflictError(f"{upload.filename} has already been imported.", code="imported")
    if upload.case_id is not None:
        raise ConflictError(f"{upload.filename} is a file of a case, not a crate.", code="no-crate")
    raise ConflictError(
        (
            f"Only {upload.received_bytes} of {upload.size_bytes} bytes of {upload.filename} have "
            "arrived."
        ),
        code="upload-incomplete",
        details={"offset": upload.received_bytes},
    )


def crate_stored(*, upload: Upload, case_id: uuid.UUID) -> None:
    """Record the imported case and delete the bytes on commit. Call in the import's transaction."""
    Upload.objects.filter(pk=upload.pk).update(
        state=UploadState.STORED, case_id=case_id, updated_at=timezone.now()
    )
    transaction.on_commit(lambda: bytes_drop([str(upload.pk)]), robust=True)


def crate_refused(*, upload_id: uuid.UUID, code: str, message: str) -> None:
    """Record that the import failed or was cancelled; the bytes stay for another request."""
    Upload.objects.filter(pk=upload_id, state=UploadState.CHECKING, case=None).update(
        state=UploadState.REFUSED, error_code=code, error_message=message, updated_at=timezone.now()
    )

"""Completion of uploads: check and store the file and create a slide or a video, or give the
error.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import transaction

from ml.imaging.formats.sniff import FileKind
from portal.archive.models import Case, Upload, UploadState
from portal.archive.selectors.intake import asset_received
from portal.archive.services.assets import asset_placing
from portal.archive.services.items import ItemReceived, item_create
from portal.archive.services.transfers.arriving import FINISH_KIND, upload_check, upload_discard
from portal.archive.services.transfers.writing import bytes_drop, has_content
from portal.archive.services.uploads import content_kind, content_kind_of, upload_keep
from portal.archive.storage import files as storage
from portal.core.disk import full_disk_refused
from portal.core.errors import ConflictError, InvalidInputError
from portal.jobs.models import WORKER_LOST, Job

MAX_LOST_JOBS = 3  # jobs, each with three attempts; more losses are no coincidence
Progress = Callable[[int, int, str], None]


def upload_finish(*, upload: Upload, progress: Progress) -> tuple[Path | None, FileKind]:
    """Check a complete transfer: join its parts, hash it, find out what it is.

    Everything here may be done twice. ``upload_store`` follows.

    Returns:
        The file, to be placed, or None if the store has its bytes; and what its content is.
    Raises:
        InvalidInputError: another hash than announced, or a kind that Tessera does not open.
    """
    path = storage.incoming_path(str(upload.pk))
    if upload.parts.exists():
        _join(path, upload, progress)
    if not path.exists() and has_content(upload):
        asset = asset_received(upload.lab_id, upload.sha256)
        if asset is not None:
            return None, content_kind_of(asset)
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
    asset = asset_received(upload.lab_id, upload.sha256)
    stored_as = asset.sha256 if asset else upload.sha256
    with asset_placing(upload.lab_id, stored_as, received=None if asset else received):
        yield
    for part in upload.parts.all():
        upload_discard(upload=part)


def upload_store(*, upload: Upload, received: Path | None, kind: FileKind) -> ItemReceived:
    """Keep a checked transfer as an asset, and make a slide or a video of it.

    Raises:
        ConflictError: its case, or the account that sent it, was deleted in the meantime.
    """
    user = upload.created_by
    case = Case.objects.filter(uploads=upload.pk).first()
    if user is None or case is None:
        missing = "case" if user else "account that sent it"
        raise ConflictError(
            f"{upload.filename}: the {missing} has been deleted in the meantime.", code="gone"
        )
    asset = asset_received(upload.lab_id, upload.sha256)
    upload_keep(
        case=case,
        received=None if asset else received,
        stored_asset=asset,
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

    Heard from ``job.ended``. Where the workers were lost nothing is wrong with the file: another
    job checks it, a few times.
    """
    if payload.get("kind") != FINISH_KIND or payload.get("state") not in ("failed", "cancelled"):
        return
    upload = Upload.objects.filter(
        pk=payload["target_id"], state=UploadState.CHECKING, asset=None
    ).first()
    if upload is None:
        return
    jobs = Job.objects.filter(kind=FINISH_KIND, target_id=upload.pk)
    if payload.get("error_code") == WORKER_LOST and jobs.count() < MAX_LOST_JOBS:
        upload_check(upload=upload, user=upload.created_by)
        return
    upload.state = UploadState.REFUSED
    upload.error_code = str(payload.get("error_code") or payload["state"])
    upload.error_message = str(payload.get("error_message") or "The work was cancelled.")
    upload.save(update_fields=["state", "error_code", "error_message", "updated_at"])
    names = [str(upload.pk), *(str(part.pk) for part in upload.parts.all())]
    upload.parts.all().delete()
    transaction.on_commit(lambda: bytes_drop(names), robust=True)


def _join(path: Path, joined: Upload, progress: Progress) -> None:
    """Write the parts one after the other; starts over after an interruption."""
    byte_count = 0
    with full_disk_refused(), path.open("wb") as out:
        for part in joined.parts.order_by("part_number"):
            with storage.incoming_path(str(part.pk)).open("rb") as source:
                while chunk := source.read(storage.CHUNK_BYTES):
                    out.write(chunk)
                    byte_count += len(chunk)
                    progress(byte_count, 2 * joined.size_bytes, "Joining the parts")
        out.flush()
        os.fsync(out.fileno())


def _sha256(path: Path, size_bytes: int, progress: Progress) -> str:
    hashed, byte_count = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(storage.CHUNK_BYTES):
            hashed.update(chunk)
            byte_count += len(chunk)
            progress(byte_count, size_bytes, "Checking the bytes")
    return hashed.hexdigest()

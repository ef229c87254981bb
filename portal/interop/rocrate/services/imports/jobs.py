"""A crate that was sent over REST, imported by a job."""

from __future__ import annotations

import fcntl
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import transaction

from portal.archive.models import Case, Upload
from portal.archive.selectors.uploads import upload_get
from portal.archive.services.transfers.crates import crate_check, crate_refused, crate_stored
from portal.archive.storage import files as storage
from portal.core.errors import ConflictError, NotFoundError
from portal.core.tasks import JobContext, JobResult
from portal.interop.rocrate.rules import require_import
from portal.interop.rocrate.selectors.imports import IMPORT_KIND, import_job
from portal.interop.rocrate.services.imports.cases import case_import
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import User

_COUNTED = ("slides", "videos", "mosaics", "rois", "roi_revisions", "labels", "embeddings")
HERE_ALREADY = "everything is already here"


def case_import_request(*, user: User, upload_id: uuid.UUID) -> Job:
    """The job that imports a crate: the one under way, or a new one.

    Raises:
        NotFoundError, ForbiddenError: no such transfer; no manager of its lab.
        ConflictError: it is incomplete, is no crate, or was imported.
    """
    require_import(user, upload_get(user=user, upload_id=upload_id).lab_id)
    with transaction.atomic():
        upload = Upload.objects.select_for_update().filter(pk=upload_id).first()
        if upload is None:  # deleted in the meantime
            raise NotFoundError("No such upload.")
        if not crate_check(upload=upload):
            job = import_job(upload)
            if job is not None and not job.has_ended:
                return job
        return job_submit(
            kind=IMPORT_KIND,
            args={"upload_id": str(upload.pk), "user_id": str(user.pk)},
            lab=upload.lab,
            user=user,
            target=upload,
            target_name=upload.filename,
        )


def case_import_work(*, user: User, upload: Upload, context: JobContext) -> JobResult:
    """Run the import of a job; after a crash the next attempt or a later job resumes.

    Raises:
        PortalError: as ``case_import``.
        OSError: another process is importing it.
    """
    crate_check(upload=upload)  # a retry finds the upload refused
    path = storage.incoming_path(str(upload.pk))
    if not path.exists():
        raise ConflictError(f"{upload.filename} is no longer kept. Send it again.", code="gone")

    @contextmanager
    def effect(case: Case) -> Iterator[None]:
        with context.effect():
            crate_stored(upload=upload, case_id=case.pk)
            yield

    with _lock_crate(path):
        imported = case_import(
            source=path,
            lab=upload.lab,
            user=user,
            progress=context.progress,
            effect=effect,
            frees_bytes=upload.size_bytes,
            name=upload.filename,
        )
    result: JobResult = {"case_id": str(imported.case.pk), "originals": imported.originals}
    result |= {name: imported.counts.get(name, 0) for name in _COUNTED}
    result["left_out"] = imported.left_out
    if not imported.is_new:
        result["outcome"] = HERE_ALREADY
    return result


def case_import_ended(*, payload: Mapping[str, Any]) -> None:
    """Keep the crate of a failed or cancelled job, with the reason. Heard from ``job.ended``."""
    if payload.get("kind") == IMPORT_KIND and payload["state"] != "succeeded":
        crate_refused(
            upload_id=uuid.UUID(payload["target_id"]),
            code=str(payload.get("error_code") or payload["state"]),
            message=str(payload.get("error_message") or "The work was cancelled."),
        )


@contextmanager
def _lock_crate(path: Path) -> Iterator[None]:
    """Lock a crate for this process: two imports would take the files from each other."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield

"""A whole case as one file that its lab takes along."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from django.db import transaction
from django.utils import timezone

from ml.files import sync_folder
from portal.archive import storage
from portal.archive.models import Case
from portal.core.disk import full_disk_refused, require_room
from portal.core.errors import NotFoundError
from portal.core.tasks import JobContext, JobResult
from portal.exchange import selectors
from portal.exchange.formats.crate import CrateWriter
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import User


def case_export_request(*, user: User, case_id: uuid.UUID) -> Job:
    """The job that writes the person's export of a case; one that is under way is it already."""
    case = selectors.case_to_export(user=user, case_id=case_id)
    with transaction.atomic():
        Case.objects.select_for_update().get(pk=case.pk)
        job = selectors.export_job(user=user, case_id=case.pk)
        if job is not None and not job.has_ended:
            return job
        return job_submit(
            kind=selectors.EXPORT_KIND,
            args={"case_id": str(case.pk), "user_id": str(user.pk)},
            lab=case.lab,
            user=user,
            target=case,
        )


def case_export_write(*, user: User, case_id: uuid.UUID, context: JobContext) -> JobResult:
    """Write the zip beside its place and put it there by one rename; twice gives the same files.

    Raises:
        NotFoundError, ForbiddenError: the case is gone, or the person is a manager no more.
    """
    case = selectors.case_to_export(user=user, case_id=case_id)
    whole = selectors.case_whole(user=user, case=case)
    total = sum(asset.size_bytes for asset in whole.originals)
    require_room(total)
    with context.scratch() as scratch:
        path = scratch / "case.zip"
        with full_disk_refused():
            rows = _write(whole, path, context, total)
        with path.open("rb") as file:
            os.fsync(file.fileno())
        size = path.stat().st_size
        with context.effect():
            target = selectors.export_path(case.pk, user)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
            sync_folder(target.parent)
    return {"originals": len(whole.originals), "rows": rows, "size_bytes": size}


def _write(whole: selectors.WholeCase, path: Path, context: JobContext, total: int) -> int:
    done = unlooked = rows = 0

    def went_on(count: int) -> None:
        nonlocal done, unlooked
        done, unlooked = done + count, unlooked + count
        if unlooked >= storage.ROOM_EVERY_BYTES:
            unlooked = 0
            require_room()
        context.progress(min(done, total), total, "Writing")

    crate = CrateWriter(path, went_on=went_on)
    try:
        for name, query in whole.tables.items():
            rows += crate.add_rows(
                f"records/{name}.jsonl", selectors.rows_of(query), about=name.replace("_", " ")
            )
        for asset in whole.originals:
            source = storage.asset_path(asset.lab_id, asset.sha256)
            found = crate.add_file(
                f"originals/{asset.sha256}", source, media_type=asset.media_type, about="original"
            )
            if found != asset.sha256:
                raise NotFoundError(
                    f"The original {asset.sha256[:12]}… is not what was stored.", code="damaged"
                )
        for mosaic in whole.mosaics:
            for name, source in selectors.mosaic_files(mosaic):
                crate.add_file(
                    f"mosaics/{mosaic.pk}/{name}",
                    source,
                    media_type="application/octet-stream",
                    about=f"of mosaic {mosaic.pk}",
                )
        crate.finish(
            identifier=f"urn:uuid:{whole.case.pk}",
            name=f"Case {whole.case.accession}",
            description="A case of Tessera: originals, records with their history, mosaics.",
            made_at=timezone.now().isoformat(),
        )
    finally:
        crate.close()
    return rows

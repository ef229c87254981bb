"""A whole case as one file that its lab takes along."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path

from django.db import transaction
from django.utils import timezone

from ml.files import sync_folder, sync_tree
from portal.archive import storage
from portal.archive.models import Case
from portal.core.connections import snapshot
from portal.core.disk import full_disk_refused, require_room
from portal.core.errors import ConflictError, NotFoundError
from portal.core.events import event_emit
from portal.core.tasks import JobContext, JobResult
from portal.exchange import selectors
from portal.exchange.formats.crate import CrateWriter
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import User


def case_export_request(*, user: User, case_id: uuid.UUID) -> Job:
    """The job that writes the person's export of a case: the one under way, or a new one."""
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
        NotFoundError, ForbiddenError: the case is gone, or the person is no longer a manager.
    """
    case = selectors.case_to_export(user=user, case_id=case_id)
    total = _originals_bytes(selectors.case_whole(user=user, case=case))
    require_room(total)
    done = unlooked = 0

    def went_on(count: int) -> None:
        nonlocal done, unlooked
        done, unlooked = done + count, unlooked + count
        if unlooked >= storage.ROOM_EVERY_BYTES:
            unlooked = 0
            require_room()
        context.progress(min(done, total), total, "Writing")

    with context.scratch() as scratch:
        path = scratch / "case.zip"
        with full_disk_refused():
            whole, rows = _write(user, case, CrateWriter(path, went_on=went_on))
        sync_tree(path)
        size = path.stat().st_size
        with context.effect():
            target = selectors.export_path(case.pk, user)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
            sync_folder(target.parent)
    return {"originals": len(whole.originals), "rows": rows, "size_bytes": size}


def case_export_to(*, user: User, case: Case, out: Path, as_folder: bool) -> JobResult:
    """Write what the person sees of a case to a new path outside the portal.

    Emits ``case.taken_along``. What was begun is deleted where it fails.

    Raises:
        ForbiddenError: no manager. ConflictError: the place is taken.
        NotFoundError: an original is not what was stored.
    """
    case = selectors.case_to_export(user=user, case_id=case.pk)
    if out.exists() or out.is_symlink():
        raise ConflictError(f"{out} already exists.", code="taken")
    with tempfile.TemporaryDirectory(prefix=".case-", dir=out.parent) as made:
        path = Path(made) / "crate"
        crate = CrateWriter(path, went_on=lambda _: None, as_folder=as_folder)
        with full_disk_refused():
            whole, rows = _write(user, case, crate)
            sync_tree(path)
        path.replace(out)
    sync_folder(out.parent)
    payload = {"case_id": str(case.pk), "user_id": str(user.pk)}
    event_emit("case.taken_along", lab_id=case.lab_id, payload=payload)
    size_bytes = _originals_bytes(whole)
    return {"originals": len(whole.originals), "rows": rows, "size_bytes": size_bytes}


def _originals_bytes(whole: selectors.WholeCase) -> int:
    return sum(asset.size_bytes for asset in whole.originals)


def _write(user: User, case: Case, crate: CrateWriter) -> tuple[selectors.WholeCase, int]:
    """All records as of one moment, so that none refers to what came or went while they were read;
    then the files of these."""
    rows = 0
    try:
        with snapshot():
            whole = selectors.case_whole(user=user, case=case)
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
                    f"The original {asset.sha256[:12]}… has changed since it was stored.",
                    code="damaged",
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
    return whole, rows

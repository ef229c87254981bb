"""A whole case as one file that its lab takes along."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from django.db import transaction
from django.utils import timezone

from ml.files import sync_folder, sync_tree
from portal.archive.models import Case
from portal.archive.services.bulk import cases_counted
from portal.archive.storage import files as storage
from portal.core.connections import snapshot
from portal.core.disk import full_disk_refused, require_room
from portal.core.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from portal.core.events import event_emit
from portal.core.tasks import JobContext, JobResult
from portal.interop.rocrate.formats.writer import CrateWriter
from portal.interop.rocrate.rules import require_export
from portal.interop.rocrate.selectors.exports import (
    EXPORT_KIND,
    MANY_KIND,
    WholeCase,
    case_to_export,
    case_whole,
    export_job,
    export_path,
    mosaic_files,
    rows_of,
)
from portal.interop.selectors import case_codes
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import User


def case_export_request(*, user: User, case_id: uuid.UUID) -> Job:
    """The job that writes the person's export of a case: the one under way, or a new one."""
    case = case_to_export(user=user, case_id=case_id)
    with transaction.atomic():
        Case.objects.select_for_update().get(pk=case.pk)
        job = export_job(user=user, case_id=case.pk)
        if job is not None and not job.has_ended:
            return job
        return job_submit(
            kind=EXPORT_KIND,
            args={"case_id": str(case.pk), "user_id": str(user.pk)},
            lab=case.lab,
            user=user,
            target=case,
        )


def case_export_write(*, user: User, case_id: uuid.UUID, context: JobContext) -> JobResult:
    """Write the zip to scratch and publish it by one rename; a repeated run gives the same files.

    Raises:
        NotFoundError, ForbiddenError: the case is gone, or the person is no longer a manager.
    """
    case = case_to_export(user=user, case_id=case_id)
    total = _originals_bytes(case_whole(user=user, case=case))
    require_room(total)
    byte_count = unchecked = 0

    def on_bytes(count: int) -> None:
        nonlocal byte_count, unchecked
        byte_count, unchecked = byte_count + count, unchecked + count
        if unchecked >= storage.ROOM_EVERY_BYTES:
            unchecked = 0
            require_room()
        context.progress(min(byte_count, total), total, "Writing")

    with context.scratch() as scratch:
        path = scratch / "case.zip"
        with full_disk_refused():
            content, rows = _write(user, case, CrateWriter(path, on_bytes=on_bytes))
        sync_tree(path)
        size = path.stat().st_size
        with context.effect():
            target = export_path(case.pk, user)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
            sync_folder(target.parent)
    return {"originals": len(content.originals), "rows": rows, "size_bytes": size}


def cases_export_request(*, user: User, case_ids: Sequence[uuid.UUID]) -> Job:
    """The job that writes the person's exports of several cases of one lab, one after the other.

    Args:
        case_ids: 1 to ``MAX_CASES``.
    Raises:
        InvalidInputError: too many cases, or cases of several labs.
        NotFoundError: the person sees none of them, or one of them not.
        ForbiddenError: no manager of the lab.
    """
    ids = cases_counted(case_ids)
    cases = list(Case.objects.owned_by(user).filter(pk__in=ids).select_related("lab"))
    if len(cases) < len(ids):
        raise NotFoundError("One of these cases does not exist.")
    lab = cases[0].lab
    if any(case.lab_id != lab.pk for case in cases):
        raise InvalidInputError("cases: choose cases of one lab.")
    require_export(user, lab.pk)
    return job_submit(
        kind=MANY_KIND,
        args={"case_ids": [str(pk) for pk in ids], "user_id": str(user.pk)},
        lab=lab,
        user=user,
        target_name=f"{len(ids)} case{'' if len(ids) == 1 else 's'}",
    )


def cases_export_write(
    *, user: User, case_ids: Sequence[uuid.UUID], since: datetime, context: JobContext
) -> JobResult:
    """Write the export of each case to its place; one that is gone does not stop the others.

    Args:
        since: Exports from this moment on were written by an earlier attempt.
    """
    written = 0
    for number, case_id in enumerate(case_ids):
        context.progress(number, len(case_ids), "Writing")
        target = export_path(case_id, user)
        if not target.is_file() or target.stat().st_mtime < since.timestamp():
            context.give_way()
            try:
                case = case_to_export(user=user, case_id=case_id)
                require_room(_originals_bytes(case_whole(user=user, case=case)))
                _write_one(user, case, target, context)
            except (NotFoundError, ForbiddenError):
                continue
        written += 1
    return {"written": written, "left_out": len(case_ids) - written}


def _write_one(user: User, case: Case, target: Path, context: JobContext) -> None:
    with context.scratch() as scratch:
        path = scratch / "case.zip"
        with full_disk_refused():
            _write(user, case, CrateWriter(path, on_bytes=lambda _: None))
        sync_tree(path)
        with context.part():
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
            sync_folder(target.parent)


def case_export_to(*, user: User, case: Case, out: Path, as_folder: bool) -> JobResult:
    """Write the parts of a case that are visible to the user to a path outside the portal.

    Emits ``case.downloaded``. What was begun is deleted where it fails.

    Raises:
        ForbiddenError: no manager.
        ConflictError: the place is taken.
        NotFoundError: an original is not what was stored.
    """
    case = case_to_export(user=user, case_id=case.pk)
    if out.exists() or out.is_symlink():
        raise ConflictError(f"{out} already exists.", code="taken")
    with tempfile.TemporaryDirectory(prefix=".case-", dir=out.parent) as scratch:
        path = Path(scratch) / "crate"
        crate = CrateWriter(path, on_bytes=lambda _: None, as_folder=as_folder)
        with full_disk_refused():
            content, rows = _write(user, case, crate)
            sync_tree(path)
        path.replace(out)
    sync_folder(out.parent)
    payload = {"case_id": str(case.pk), "user_id": str(user.pk)}
    event_emit("case.downloaded", lab_id=case.lab_id, payload=payload)
    size_bytes = _originals_bytes(content)
    return {"originals": len(content.originals), "rows": rows, "size_bytes": size_bytes}


def _originals_bytes(content: WholeCase) -> int:
    return sum(asset.size_bytes for asset in content.originals)


def _write(user: User, case: Case, crate: CrateWriter) -> tuple[WholeCase, int]:
    """Write all records from one snapshot, so that no reference is missing, then their files."""
    rows = 0
    try:
        with snapshot():
            content = case_whole(user=user, case=case)
            for name, query in content.tables.items():
                rows += crate.add_rows(
                    f"records/{name}.jsonl", rows_of(query), about=name.replace("_", " ")
                )
            for name, term in case_codes(case).items():
                crate.add_term(name, term=term.term, code=term.code, system=term.system)
        for asset in content.originals:
            source = storage.asset_path(asset.lab_id, asset.sha256)
            written_sha256 = crate.add_file(
                f"originals/{asset.sha256}", source, media_type=asset.media_type, about="original"
            )
            if written_sha256 != asset.sha256:
                raise NotFoundError(
                    f"The original {asset.sha256[:12]}… has changed since it was stored.",
                    code="damaged",
                )
        for mosaic in content.mosaics:
            for name, source in mosaic_files(mosaic):
                crate.add_file(
                    f"mosaics/{mosaic.pk}/{name}",
                    source,
                    media_type="application/octet-stream",
                    about=f"of mosaic {mosaic.pk}",
                )
        crate.finish(
            identifier=f"urn:uuid:{content.case.pk}",
            name=f"Case {content.case.accession}",
            description="A case of Tessera: originals, records with their history, mosaics.",
            made_at=timezone.now().isoformat(),
        )
    finally:
        crate.close()
    return content, rows

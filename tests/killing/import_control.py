"""Answers ``stage COUNT``, ``at_once COUNT``, ``imported`` and ``silent``: imports onto a slide."""

from __future__ import annotations

import io
import json

import django

django.setup()

from django.utils import timezone  # noqa: E402

from portal.annotations.models import Roi, RoiImport, RoiRevision  # noqa: E402
from portal.annotations.services.exchange import ImportChoices, roi_import  # noqa: E402
from portal.annotations.services.imports import SILENT  # noqa: E402
from portal.annotations.services.staged import import_folder, roi_import_stage  # noqa: E402
from portal.archive.models import Canvas, CanvasKind, Case  # noqa: E402
from portal.jobs.models import Job  # noqa: E402
from portal.labs.models import Lab, Membership, Role, User  # noqa: E402
from tests.bench.imports import document  # noqa: E402
from tests.killing.command_line import dispatch  # noqa: E402

SIDE = 9000


def _canvas() -> tuple[Canvas, User]:
    lab, is_new = Lab.objects.get_or_create(slug="imports", defaults={"name": "Imports"})
    if not is_new:
        return Canvas.objects.get(lab=lab), User.objects.get(email="brings@kill.example")
    user = User.objects.create_user("brings@kill.example", "correct horse battery")
    Membership.objects.create(user=user, lab=lab, role=Role.MANAGER)
    canvas = Canvas.objects.create(
        lab=lab,
        case=Case.objects.create(lab=lab, accession="K-2"),
        kind=CanvasKind.SLIDE,
        name="Section",
        width_px=SIDE,
        height_px=SIDE,
        levels=[],
        pixels_path="kill/none.tif",
        content_hash="0" * 64,
    )
    return canvas, user


def stage(count: str) -> object:
    """A document that a worker imports."""
    canvas, user = _canvas()
    text = json.dumps(document(int(count), width_px=SIDE, height_px=SIDE))
    row = roi_import_stage(
        canvas=canvas,
        user=user,
        file=io.BytesIO(text.encode()),
        choices=ImportChoices(),
        is_preview=False,
    )
    return str(row.pk)


def at_once(count: str) -> object:
    """A document that is imported here, as within a request."""
    canvas, user = _canvas()
    features = document(int(count), width_px=SIDE, height_px=SIDE)
    return roi_import(canvas=canvas, user=user, document=features).total


def imported() -> object:
    """State of the last import."""
    row = RoiImport.objects.order_by("created_at").last()
    if row is None:
        return {"done": 0, "live": 0}
    table = import_folder(row) / "report.csv"
    job = Job.objects.filter(pk=row.job_id).first()
    return {
        "state": job.state if job else "",
        "done": row.done,
        "created": row.report["created"] if row.report else 0,
        "undone": row.undone_at is not None,
        "live": Roi.objects.live().count(),
        "revisions": RoiRevision.objects.count(),
        "lines": len(table.read_text().splitlines()) if table.exists() else 0,
    }


def silent() -> object:
    """Make the last import look silent for long."""
    return RoiImport.objects.update(updated_at=timezone.now() - 2 * SILENT)


if __name__ == "__main__":
    dispatch({"stage": stage, "at_once": at_once, "imported": imported, "silent": silent})

"""Documents that jobs import, and what became of them."""

from __future__ import annotations

import io
import json
from typing import Any

from portal.annotations.models import RoiImport
from portal.annotations.services.exchange import ImportChoices
from portal.annotations.services.staged import roi_import_stage
from portal.archive.models import Canvas
from portal.jobs.models import Job
from portal.jobs.worker.runner import job_run
from portal.labs.models import User
from tests.portal.annotations.support import box, collection, feature

KINDS = ("created", "updated", "restored", "unchanged", "refused")


def document(count: int, **properties: Any) -> bytes:
    features = [
        feature(box(n % 40, n // 40, n % 40 + 9, n // 40 + 9), name=f"n{n}", **properties)
        for n in range(count)
    ]
    flat = feature({"type": "Circle", "coordinates": [1, 1]})
    return json.dumps(collection(*features, flat)).encode()


def stage(canvas: Canvas, user: User, data: bytes, *, is_preview: bool = False) -> RoiImport:
    return roi_import_stage(
        canvas=canvas,
        user=user,
        file=io.BytesIO(data),
        choices=ImportChoices(),
        is_preview=is_preview,
        document_name="cells.geojson",
    )


def run(row: RoiImport) -> RoiImport:
    row.refresh_from_db()
    assert row.job_id and job_run(row.job_id)
    row.refresh_from_db()
    return row


def counts(row: RoiImport) -> tuple[int, ...]:
    assert row.report
    return tuple(row.report[kind] for kind in KINDS)


def state(row: RoiImport) -> str:
    assert row.job_id
    return Job.objects.get(pk=row.job_id).state

"""Events of assignments and studies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from portal.core.events import event_emit, events_emit
from portal.reader_studies.events import AssignmentEvent
from portal.reader_studies.models import Assignment, Study


def study_event_emit(name: str, study: Study, **extra: Any) -> None:
    """Emit ``study.created``, ``.completed``, ``.unblinded`` or ``.decided``."""
    payload = {"study_id": str(study.pk), **extra}
    event_emit(f"study.{name}", lab_id=study.lab_id, payload=payload)


def assignment_events_emit(name: AssignmentEvent, rows: Sequence[Assignment]) -> None:
    """Emit one event for each assignment."""
    if not rows:
        return
    payloads = [
        {
            "assignment_id": str(row.pk),
            "canvas_id": str(row.canvas_id),
            "case_id": str(row.canvas.case_id),
            "person": str(row.person_id),
            "study": str(row.study_id) if row.study_id else None,
        }
        for row in rows
    ]
    events_emit(name, lab_id=rows[0].lab_id, payloads=payloads)

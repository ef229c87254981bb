"""Subscriptions to events of other apps."""

from __future__ import annotations

import uuid

from portal.archive.events import ArchiveEvent
from portal.core.events import subscribe
from portal.core.models import Event
from portal.embeddings.services.submissions import canvases_restored
from portal.interop.rocrate.services.imports.jobs import case_import_ended
from portal.jobs.events import JobEvent


@subscribe(JobEvent.ENDED)
def record_import_end(event: Event) -> None:
    """Store with the import of a case how its job ended."""
    case_import_ended(payload=event.payload)


@subscribe(ArchiveEvent.SLIDE_READY)
@subscribe(ArchiveEvent.VIDEO_READY)
def embed_imported_regions(event: Event) -> None:
    """Embed the imported regions of an image when its pixels are ready."""
    if event.lab_id is not None:
        canvas_id = uuid.UUID(event.payload["canvas_id"])
        canvases_restored(lab_id=event.lab_id, canvas_ids=[canvas_id])

"""Handlers of events in the archive."""

from __future__ import annotations

from portal.archive.services.ingest import item_job_ended
from portal.archive.services.transfers.finishing import upload_job_ended
from portal.core.events import subscribe
from portal.core.models import Event
from portal.jobs.events import JobEvent


@subscribe(JobEvent.ENDED)
def note_end_of_ingest(event: Event) -> None:
    """An item whose ingest failed says why."""
    item_job_ended(payload=event.payload)
    upload_job_ended(payload=event.payload)

"""Handlers of events in the archive."""

from __future__ import annotations

from portal.archive.services.ingest import item_job_ended
from portal.archive.services.transfers.finishing import upload_job_ended
from portal.core.events import subscribe
from portal.core.models import Event
from portal.jobs.events import JobEvent


@subscribe(JobEvent.ENDED)
def record_ingest_failure(event: Event) -> None:
    """Store the reason of a failed ingest with its item."""
    item_job_ended(payload=event.payload)
    upload_job_ended(payload=event.payload)

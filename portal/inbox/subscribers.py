"""Handlers of events in the inbox."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from portal.annotations.events import RoiEvent
from portal.archive.events import ArchiveEvent
from portal.core.events import subscribe, subscribe_batches
from portal.core.models import Event
from portal.inbox import services
from portal.jobs.events import JobEvent
from portal.reader_studies.events import AssignmentEvent
from portal.review.events import ReviewEvent


@subscribe(RoiEvent.SAVED)
def notify_author_of_rejection(event: Event) -> None:
    """Notify the author of a rejected region."""
    if event.lab_id is not None:
        services.notify_of_rejection(lab_id=event.lab_id, payload=event.payload)


@subscribe(ReviewEvent.COMMENTED)
def notify_thread(event: Event) -> None:
    """Notify the participants of a region's thread and the members a comment mentions."""
    if event.lab_id is not None:
        services.notify_of_comment(lab_id=event.lab_id, payload=event.payload)


@subscribe_batches(AssignmentEvent.MADE)
def notify_assignees(events: Sequence[Event]) -> None:
    services.notify_of_assignments([uuid.UUID(event.payload["assignment_id"]) for event in events])


@subscribe(JobEvent.ENDED)
def notify_starter(event: Event) -> None:
    """Notify the user who started a mosaic or an import that it ended."""
    if event.lab_id is not None:
        services.notify_of_job(lab_id=event.lab_id, payload=event.payload)


@subscribe(ArchiveEvent.QUARANTINE_PUT)
def notify_managers(event: Event) -> None:
    """Notify the managers of a file in quarantine."""
    if event.lab_id is not None:
        services.notify_of_quarantine(lab_id=event.lab_id, payload=event.payload)


@subscribe(ArchiveEvent.QUARANTINE_REDACTED)
@subscribe(ArchiveEvent.QUARANTINE_RETRIED)
@subscribe(ArchiveEvent.QUARANTINE_RELEASED)
def delete_notifications_of_quarantine(event: Event) -> None:
    """Delete the notifications of a file that left quarantine."""
    services.quarantine_notifications_delete(upload_id=uuid.UUID(event.payload["upload_id"]))

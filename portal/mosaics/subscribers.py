"""Handlers of events in mosaics."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from portal.annotations.events import RoiEvent
from portal.archive.events import ArchiveEvent
from portal.archive.models import Video
from portal.core.events import subscribe, subscribe_batches
from portal.core.models import Event
from portal.jobs.events import JobEvent
from portal.mosaics.services.followups import followup_job_ended
from portal.mosaics.services.mosaics import mosaic_job_ended, mosaics_follow_title
from portal.mosaics.services.removal import (
    followup_files_drop,
    mosaics_purge,
    mosaics_restored,
    mosaics_trashed,
)


@subscribe(JobEvent.ENDED)
def record_job_end(event: Event) -> None:
    """Store with a mosaic or follow-up how its job ended."""
    mosaic_job_ended(payload=event.payload)
    followup_job_ended(payload=event.payload)


@subscribe(ArchiveEvent.ITEM_RENAMED)
def rename_mosaics(event: Event) -> None:
    """Rename the mosaics of a renamed video."""
    if event.payload["item_kind"] == "video":
        mosaics_follow_title(Video.objects.get(pk=event.payload["item_id"]))


@subscribe(ArchiveEvent.TRASH_PUT)
def trash_mosaics(event: Event) -> None:
    """Put the mosaics of a video into the trash with it."""
    mosaics_trashed(payload=event.payload)


@subscribe(ArchiveEvent.TRASH_RESTORED)
def restore_mosaics(event: Event) -> None:
    """Restore the mosaics of a restored video."""
    mosaics_restored(payload=event.payload)


@subscribe(ArchiveEvent.TRASH_PURGING)
def purge_mosaics(event: Event) -> None:
    """Delete the mosaics of a deleted video."""
    mosaics_purge(payload=event.payload)


@subscribe_batches(RoiEvent.PURGED)
def drop_files_of_followups(events: Sequence[Event]) -> None:
    """Delete the files of follow-ups whose ROI was deleted; their rows are deleted with it."""
    followup_files_drop(roi_ids=[uuid.UUID(event.payload["roi_id"]) for event in events])

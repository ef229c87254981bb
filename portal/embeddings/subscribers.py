"""Event handlers: saved ROIs are embedded."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from portal.annotations.events import RoiEvent
from portal.archive.events import ArchiveEvent
from portal.core.events import subscribe, subscribe_batches
from portal.core.models import Event
from portal.embeddings.selectors.embeddings import CANVAS_KIND
from portal.embeddings.selectors.encoders import BACKFILL_KIND
from portal.embeddings.services.embeddings import embeddings_supersede
from portal.embeddings.services.encoders import encoder_switch_if_complete
from portal.embeddings.services.submissions import (
    RoiSave,
    canvas_changed,
    canvases_restored,
    rois_changed,
    rois_saved_in_bulk,
)
from portal.jobs.events import JobEvent


@subscribe_batches(RoiEvent.SAVED)
def embed_saved_rois(events: Sequence[Event]) -> None:
    """Submit the embedding of saved ROIs, except for those of a bulk save."""
    rois_changed(
        RoiSave(
            roi_id=uuid.UUID(event.payload["roi_id"]),
            version=event.payload["version"],
            action=event.payload["action"],
            geometry_changed=event.payload["geometry_changed"],
            is_bulk=event.payload["is_bulk"],
        )
        for event in events
    )


@subscribe(RoiEvent.SAVED_IN_BULK)
def embed_rois_saved_in_bulk(event: Event) -> None:
    """Submit one job for the canvas of a bulk save."""
    user_id = event.payload["user_id"]
    rois_saved_in_bulk(
        canvas_id=uuid.UUID(event.payload["canvas_id"]),
        user_id=uuid.UUID(user_id) if user_id else None,
    )


@subscribe_batches(RoiEvent.DELETED)
def forget_deleted_rois(events: Sequence[Event]) -> None:
    """Remove deleted ROIs from searches."""
    embeddings_supersede(roi_ids=[uuid.UUID(event.payload["roi_id"]) for event in events])


@subscribe(ArchiveEvent.CANVAS_SCALED)
@subscribe(ArchiveEvent.DISPLAY_RANGE_SET)
@subscribe(ArchiveEvent.MODALITY_SET)
def embed_canvas_again(event: Event) -> None:
    """Embed a canvas again after a change of scale or display range."""
    canvas_changed(
        canvas_id=uuid.UUID(event.payload["canvas_id"]),
        user_id=uuid.UUID(event.payload["user_id"]),
    )


@subscribe(ArchiveEvent.TRASH_RESTORED)
def embed_restored_canvases(event: Event) -> None:
    """Embed ROIs that were skipped in the trash."""
    if event.lab_id is not None:
        canvas_ids = [uuid.UUID(pk) for pk in event.payload["canvas_ids"]]
        canvases_restored(lab_id=event.lab_id, canvas_ids=canvas_ids)


@subscribe(JobEvent.ENDED)
def switch_encoder_after_job(event: Event) -> None:
    """Switch to the next encoder after the last embedding of an archive."""
    if event.payload["kind"] in (CANVAS_KIND, BACKFILL_KIND):
        encoder_switch_if_complete()

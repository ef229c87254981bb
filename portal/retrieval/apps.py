"""App configuration."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from portal.core.models import Event


class RetrievalConfig(AppConfig):
    """Tessera's app for embeddings and search."""

    name = "portal.retrieval"
    label = "retrieval"

    def ready(self) -> None:
        """Hear of ROIs that were saved or deleted; say which ROIs can be searched with.

        Extend the viewer and the pages of cases, follow titles, and register the daily chores.
        """
        from portal.annotations.selectors import embedded_probe_register
        from portal.archive import extensions
        from portal.archive.services import canvas_titled
        from portal.core.events import subscribe, subscribe_batches
        from portal.core.housekeeping import daily
        from portal.jobs.selectors import target_register
        from portal.retrieval.models import Query
        from portal.retrieval.selectors import rois_with_embedding
        from portal.retrieval.services import (
            explanations_sweep,
            queries_sweep,
            samples_sweep,
            titles_follow,
        )
        from portal.retrieval.views.queries import canvas_action
        from portal.retrieval.views.reports import case_section

        subscribe_batches("roi.saved")(_rois_saved)
        subscribe("rois.saved_in_bulk")(_rois_saved_in_bulk)
        subscribe("canvas.scaled")(_canvas_changed)
        subscribe("canvas.display_range_set")(_canvas_changed)
        subscribe_batches("roi.deleted")(_rois_deleted)
        subscribe("job.ended")(_job_ended)
        subscribe("bin.restored")(_restored)
        embedded_probe_register(rois_with_embedding)
        target_register("query", lambda _: Query.objects.all())
        daily("queries", queries_sweep)
        daily("explanations", explanations_sweep)
        daily("tissue samples", samples_sweep)
        if canvas_action not in extensions.canvas_actions:
            extensions.canvas_actions.append(canvas_action)
            canvas_titled.append(titles_follow)
            extensions.case_sections.append(case_section)


def _rois_saved(events: Sequence[Event]) -> None:
    from portal.retrieval.services import RoiSave, rois_changed

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


def _rois_saved_in_bulk(event: Event) -> None:
    from portal.retrieval.services import rois_saved_in_bulk

    user_id = event.payload["user_id"]
    rois_saved_in_bulk(
        canvas_id=uuid.UUID(event.payload["canvas_id"]),
        user_id=uuid.UUID(user_id) if user_id else None,
    )


def _canvas_changed(event: Event) -> None:
    from portal.retrieval.services import canvas_changed

    canvas_changed(
        canvas_id=uuid.UUID(event.payload["canvas_id"]),
        user_id=uuid.UUID(event.payload["user_id"]),
    )


def _rois_deleted(events: Sequence[Event]) -> None:
    from portal.retrieval.services import embeddings_supersede

    embeddings_supersede(roi_ids=[uuid.UUID(event.payload["roi_id"]) for event in events])


def _restored(event: Event) -> None:
    from portal.retrieval.services import canvases_restored

    if event.lab_id is not None:
        canvas_ids = [uuid.UUID(pk) for pk in event.payload["canvas_ids"]]
        canvases_restored(lab_id=event.lab_id, canvas_ids=canvas_ids)


def _job_ended(event: Event) -> None:
    from portal.retrieval.selectors import BACKFILL_KIND, CANVAS_KIND
    from portal.retrieval.services import encoder_switch_if_complete, training_ended

    training_ended(payload=event.payload)
    if event.payload["kind"] in (CANVAS_KIND, BACKFILL_KIND):
        encoder_switch_if_complete()

"""Reads of ROIs and events of videos in the trash."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

from django.db.models import Count, OuterRef, QuerySet, Subquery

from portal.annotations.models import Roi, RoiAction, RoiRevision, VideoEvent, VideoEventRevision
from portal.core.errors import NotFoundError
from portal.labs.models import Lab, Role, User
from portal.labs.selectors import labs_with_role


def rois_in_trash(user: User, *, lab: Lab) -> QuerySet[Roi]:
    """ROIs that were deleted by themselves, the newest first, with ``deleted_by``.

    Those on something that is in the trash come back with it and are not shown.
    """
    deletions = RoiRevision.objects.filter(roi=OuterRef("pk"))
    rows: QuerySet[Roi] = _deleted_rows(Roi.objects.owned_by(user), user, lab, deletions)
    return rows.select_related("canvas__case", "label").defer(
        "geometry", "foreign", "canvas__levels"
    )


def video_events_in_trash(user: User, *, lab: Lab) -> QuerySet[VideoEvent]:
    """Events of videos that were deleted by themselves, like ``rois_in_trash``."""
    deletions = VideoEventRevision.objects.filter(event=OuterRef("pk"))
    rows: QuerySet[VideoEvent] = _deleted_rows(
        VideoEvent.objects.owned_by(user), user, lab, deletions
    )
    return rows.select_related("canvas__case", "canvas__video").defer("canvas__levels")


def roi_in_trash(user: User, roi_id: uuid.UUID) -> Roi:
    """A deleted ROI; ``NotFoundError`` where it is not deleted, or another lab's."""
    roi: Roi = _one(Roi.objects.visible_to(user), roi_id, "region")
    return roi


def video_event_in_trash(user: User, event_id: uuid.UUID) -> VideoEvent:
    """A deleted event; ``NotFoundError`` where it is not deleted, or another lab's."""
    event: VideoEvent = _one(VideoEvent.objects.visible_to(user), event_id, "event of a video")
    return event


def rois_of_trash_entries(entry_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Number of ROIs on the canvases of each entry of the trash."""
    return _counts_by_entry(Roi, entry_ids)


def video_events_of_trash_entries(entry_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Number of events of the videos of each entry of the trash."""
    return _counts_by_entry(VideoEvent, entry_ids)


def _deleted_rows(rows: Any, user: User, lab: Lab, revisions: QuerySet[Any]) -> Any:
    last = revisions.filter(action=RoiAction.DELETE).order_by("-version")
    return (
        rows.filter(
            lab__in=labs_with_role(user, at_least=Role.ANNOTATOR), lab=lab, deleted_at__isnull=False
        )
        .annotate(deleted_by=Subquery(last.values("author__full_name")[:1]))
        .order_by("-deleted_at", "id")
    )


def _one(rows: Any, pk: uuid.UUID, noun: str) -> Any:
    row = rows.filter(deleted_at__isnull=False, pk=pk).select_related("canvas").first()
    if row is None:
        raise NotFoundError(f"There is no such {noun} in the trash.")
    return row


def _counts_by_entry(
    model: type[Roi] | type[VideoEvent], entry_ids: Collection[uuid.UUID]
) -> dict[uuid.UUID, int]:
    rows = model.all_objects.filter(canvas__trash_entry__in=entry_ids, deleted_at=None).order_by()
    return dict(rows.values_list("canvas__trash_entry").annotate(number=Count("pk")))

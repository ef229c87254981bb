"""Reads of ROIs, lists of ROIs and revisions, limited to those visible to the user."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from django.db.models import Count, F, Q, QuerySet

from portal.annotations.formats.types import ExportChoices, FormatWriter, plane_of
from portal.annotations.models import Roi, RoiImport, RoiQuerySet, RoiRevision
from portal.annotations.selectors.video_events import video_events
from portal.archive.models import Canvas
from portal.core.errors import NotFoundError
from portal.labs.models import User


@dataclass(frozen=True, slots=True)
class RoiFilter:
    """Filter of the list of ROIs. A window is in level-0 pixels and matches ROIs that touch it.

    Attributes:
        min_size_px: Only ROIs at least this wide or high.
        frame_index, frame_pts: Only ROIs of this video frame.
        deleted: Deleted ROIs instead of live ones.
        ids: Only these.
    """

    canvas_id: uuid.UUID | None = None
    label_id: uuid.UUID | None = None
    review_state: str | None = None
    left: float | None = None
    top: float | None = None
    right: float | None = None
    bottom: float | None = None
    min_size_px: float | None = None
    frame_index: int | None = None
    frame_pts: int | None = None
    deleted: bool = False
    ids: Sequence[uuid.UUID] | None = None

    def query(self) -> Q:
        """The conditions as one ``Q``."""
        exact = {
            "canvas_id": self.canvas_id,
            "label_id": self.label_id,
            "review_state": self.review_state,
            "right__gte": self.left,
            "left__lte": self.right,
            "bottom__gte": self.top,
            "top__lte": self.bottom,
            "frame_index": self.frame_index,
            "frame_pts": self.frame_pts,
            "pk__in": self.ids,
        }
        query = Q(deleted_at__isnull=not self.deleted)
        query &= Q(**{name: value for name, value in exact.items() if value is not None})
        if self.min_size_px is not None:
            query &= Q(right__gte=F("left") + self.min_size_px) | Q(
                bottom__gte=F("top") + self.min_size_px
            )
        return query


def roi_get(user: User, roi_id: uuid.UUID, *, with_shared: bool = True) -> Roi:
    """An ROI, deleted or not; ``NotFoundError`` also for another lab's.

    Args:
        with_shared: also those that another lab shares, if not deleted. Follow-ups leave
            them out, since they look into the patient's other cases.
    """
    rois = Roi.objects.visible_to(user) if with_shared else Roi.objects.owned_by(user)
    roi: Roi | None = _join_related(rois).filter(pk=roi_id).first()
    if roi is None:
        raise NotFoundError("There is no such region.")
    return roi


def rois_by_id(user: User, canvas: Canvas, ids: Sequence[uuid.UUID]) -> list[Roi]:
    """ROIs of a canvas by id, deleted ones included, in the given order; unknown ids are
    skipped."""
    rows = _join_related(Roi.objects.visible_to(user)).filter(canvas=canvas, pk__in=ids)
    by_id = {roi.pk: roi for roi in rows}
    return [by_id[roi_id] for roi_id in ids if roi_id in by_id]


def roi_counts(user: User, canvas_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Number of live ROIs that the person may see, by canvas; canvases without any are left out."""
    rois = Roi.objects.visible_to(user).live().filter(canvas__in=canvas_ids)
    return dict(rois.order_by().values_list("canvas").annotate(Count("pk")))


def _join_related(rois: RoiQuerySet) -> RoiQuerySet:
    return rois.select_related("canvas__video", "created_by").defer("foreign")


def roi_revisions(roi: Roi) -> QuerySet[RoiRevision]:
    """All revisions of an ROI, first to last, with their authors."""
    return roi.revisions.select_related("author").order_by("version")


def roi_export(
    user: User, canvas: Canvas, *, writer: FormatWriter, choices: ExportChoices
) -> Iterator[bytes]:
    """The live ROIs and events of a canvas that the person may see in a format, piece by piece.

    Raises:
        InvalidInputError, NotFoundError: this canvas cannot be written so, before the first piece.
    """
    rows = (
        Roi.objects.visible_to(user)
        .live()
        .filter(canvas=canvas)
        .select_related("label")
        .order_by("created_at", "id")
    )
    choices = replace(choices, events=video_events(user, canvas))
    return writer.write(lambda: rows.iterator(chunk_size=500), plane_of(canvas), choices)


def roi_import_get(user: User, import_id: uuid.UUID) -> RoiImport:
    """Import in one of the user's labs; ``NotFoundError`` if it is not visible."""
    roi_import: RoiImport | None = RoiImport.objects.visible_to(user).filter(pk=import_id).first()
    if roi_import is None:
        raise NotFoundError("No such import.")
    return roi_import

"""Reads: one ROI, what a list asks for, and revisions. All begin with what the person may see."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db.models import F, Q, QuerySet

from portal.annotations.formats import ExportChoices, FormatWriter, plane_of
from portal.annotations.models import Roi, RoiImport, RoiQuerySet, RoiRevision
from portal.archive.models import Canvas
from portal.core.errors import NotFoundError
from portal.labs.models import User


@dataclass(frozen=True, slots=True)
class RoiFilter:
    """What to list. Window sides are level-0 pixels; an ROI that touches the window is in it.

    Attributes:
        min_size_px: only ROIs at least this wide or high.
        frame_index, frame_pts: only ROIs of this frame of a video.
        deleted: list the deleted instead of the live.
        ids: only these.
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
    """One ROI, deleted or not; ``NotFoundError`` also where it is another lab's.

    Args:
        with_shared: also those that another lab shares, if not deleted. Follow-ups leave
            them out, since they look into the patient's other cases.
    """
    rois = Roi.objects.visible_to(user) if with_shared else Roi.objects.owned_by(user)
    roi: Roi | None = _joined(rois).filter(pk=roi_id).first()
    if roi is None:
        raise NotFoundError("There is no such ROI.")
    return roi


def rois_by_id(user: User, canvas: Canvas, ids: Sequence[uuid.UUID]) -> list[Roi]:
    """These ROIs of a canvas, deleted or not, in the order asked for, without any not found."""
    rows = _joined(Roi.objects.visible_to(user)).filter(canvas=canvas, pk__in=ids)
    found = {roi.pk: roi for roi in rows}
    return [found[one] for one in ids if one in found]


def _joined(rois: RoiQuerySet) -> RoiQuerySet:
    return rois.select_related("canvas__video", "created_by").defer("foreign")


def roi_revisions(roi: Roi) -> QuerySet[RoiRevision]:
    """Every state the ROI ever had, first to last, with authors."""
    return roi.revisions.select_related("author").order_by("version")


def roi_export(
    user: User, canvas: Canvas, *, writer: FormatWriter, choices: ExportChoices
) -> Iterator[bytes]:
    """The live ROIs of a canvas that the person may see in a format, piece by piece.

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
    return writer.write(lambda: rows.iterator(chunk_size=500), plane_of(canvas), choices)


def roi_import_get(user: User, import_id: uuid.UUID) -> RoiImport:
    """One import of a lab of this person's, or ``NotFoundError``."""
    found: RoiImport | None = RoiImport.objects.visible_to(user).filter(pk=import_id).first()
    if found is None:
        raise NotFoundError("No such import.")
    return found

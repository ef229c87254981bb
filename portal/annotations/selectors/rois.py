"""Reads: ROIs by window, and their revisions. All begin with what the person may see."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db.models import F, Q, QuerySet

from portal.annotations.geometry import area_um2
from portal.annotations.models import Roi, RoiImport, RoiQuerySet, RoiRevision
from portal.annotations.qupath import document_write, feature_write
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
        }
        query = Q(deleted_at__isnull=not self.deleted)
        query &= Q(**{name: value for name, value in exact.items() if value is not None})
        if self.min_size_px is not None:
            query &= Q(right__gte=F("left") + self.min_size_px) | Q(
                bottom__gte=F("top") + self.min_size_px
            )
        return query


def roi_list(user: User, wanted: RoiFilter) -> RoiQuerySet:
    """ROIs of the person's labs, with what their representation needs, oldest first.

    On one canvas those that another lab shares as well.
    """
    is_on_one = wanted.canvas_id is not None
    rois = Roi.objects.visible_to(user) if is_on_one else Roi.objects.owned_by(user)
    return _joined(rois).filter(wanted.query())


def roi_get(user: User, roi_id: uuid.UUID, *, with_shared: bool = True) -> Roi:
    """One ROI, deleted or not; ``NotFoundError`` also where it is another lab's.

    Args:
        with_shared: those that another lab shares, while they are not deleted. Searches and
            follow-ups leave them out, since both look beyond the case.
    """
    rois = Roi.objects.visible_to(user) if with_shared else Roi.objects.owned_by(user)
    roi: Roi | None = _joined(rois).filter(pk=roi_id).first()
    if roi is None:
        raise NotFoundError("There is no such ROI.")
    return roi


def rois_by_id(user: User, canvas: Canvas, ids: Sequence[uuid.UUID]) -> list[Roi]:
    """These ROIs of a canvas, deleted or not, in the order asked for, less what is not there."""
    rows = _joined(Roi.objects.visible_to(user)).filter(canvas=canvas, pk__in=ids)
    found = {roi.pk: roi for roi in rows}
    return [found[one] for one in ids if one in found]


def _joined(rois: RoiQuerySet) -> RoiQuerySet:
    return rois.select_related("canvas__video", "created_by").defer("foreign")


def roi_revisions(roi: Roi) -> QuerySet[RoiRevision]:
    """Every state the ROI ever had, first to last, with authors."""
    return roi.revisions.select_related("author").order_by("version")


def roi_export(canvas: Canvas) -> Iterator[str]:
    """The live ROIs of a canvas as QuPath's GeoJSON, piece by piece, in constant memory."""
    rois = (
        Roi.objects.live()
        .filter(canvas=canvas)
        .select_related("label")
        .order_by("created_at", "id")
    )
    return document_write(
        feature_write(roi, area_um2=area_um2(roi.area_px, canvas.mpp_x, canvas.mpp_y))
        for roi in rois.iterator(chunk_size=500)
    )


def roi_import_get(user: User, import_id: uuid.UUID) -> RoiImport:
    """One import of a lab of this person's, or ``NotFoundError``."""
    found: RoiImport | None = RoiImport.objects.visible_to(user).filter(pk=import_id).first()
    if found is None:
        raise NotFoundError("No such import.")
    return found

"""Reads: ROIs by window, their revisions, labels. All begin with what the person may see."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from django.db.models import Count, F, Q, QuerySet

from portal.annotations.geometry import area_um2
from portal.annotations.models import Label, LabelSet, Roi, RoiQuerySet, RoiRevision
from portal.annotations.qupath import document_write, feature_write
from portal.archive.models import Canvas
from portal.core.errors import InvalidInputError, NotFoundError
from portal.labs.models import Lab, Membership, User

EmbeddedProbe = Callable[[Collection[uuid.UUID]], set[uuid.UUID]]
_embedded_probes: list[EmbeddedProbe] = []


def embedded_probe_register(probe: EmbeddedProbe) -> None:
    """Let a higher app say which ROIs have an embedding of their present version.

    Call from ``AppConfig.ready``. The probe gets ROI ids and returns those that are embedded; it is
    asked once for a whole page of ROIs.
    """
    if probe not in _embedded_probes:
        _embedded_probes.append(probe)


def rois_embedded(roi_ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Those of the ROIs that can be searched with right now."""
    found: set[uuid.UUID] = set()
    if roi_ids:
        for probe in _embedded_probes:
            found |= probe(roi_ids)
    return found


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
    """The ROIs the person may see, with what their representation needs, oldest first."""
    return _joined(Roi.objects.visible_to(user)).filter(wanted.query())


def roi_get(user: User, roi_id: uuid.UUID) -> Roi:
    """One ROI, deleted or not; ``NotFoundError`` also where it is another lab's."""
    roi: Roi | None = _joined(Roi.objects.visible_to(user)).filter(pk=roi_id).first()
    if roi is None:
        raise NotFoundError("There is no such ROI.")
    return roi


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


def canvas_get(user: User, canvas_id: uuid.UUID) -> Canvas:
    """A canvas to draw on; ``NotFoundError`` also where it is another lab's."""
    canvas: Canvas | None = (
        Canvas.objects.visible_to(user).select_related("video", "lab").filter(pk=canvas_id).first()
    )
    if canvas is None:
        raise NotFoundError("There is no such canvas.")
    return canvas


def label_list(user: User, *, lab_id: uuid.UUID | None = None) -> QuerySet[Label]:
    """The labels of the person's labs (or one of them), in their order."""
    labels = Label.objects.visible_to(user).order_by("lab_id", "position", "name")
    return labels.filter(lab_id=lab_id) if lab_id else labels


def labels_with_use(lab: Lab) -> QuerySet[Label]:
    """The lab's labels with ``roi_count``. Call with a lab found visible."""
    return (
        Label.objects.filter(lab=lab).annotate(roi_count=Count("roi")).order_by("position", "name")
    )


def label_get(user: User, label_id: uuid.UUID) -> Label:
    """One label; ``NotFoundError`` also where it is another lab's."""
    label: Label | None = (
        Label.objects.visible_to(user).select_related("lab").filter(pk=label_id).first()
    )
    if label is None:
        raise NotFoundError("There is no such label.")
    return label


def label_of_lab(lab_id: uuid.UUID, label_id: uuid.UUID | None) -> Label | None:
    """The label to put on an ROI of this lab; ``InvalidInputError`` where the lab has none such."""
    if label_id is None:
        return None
    label: Label | None = Label.objects.filter(lab_id=lab_id, pk=label_id).first()
    if label is None:
        raise InvalidInputError(
            f"label: no label {label_id} in this lab. GET /api/v1/labels/ lists them.",
            code="unknown-label",
        )
    return label


def labs_without_labels(user: User) -> QuerySet[Lab]:
    """The person's labs that have no label set yet."""
    mine = Membership.objects.filter(user=user).values("lab_id")
    return Lab.objects.filter(pk__in=mine).exclude(pk__in=LabelSet.objects.values("lab_id"))


def lab_of(user: User, lab_id: uuid.UUID | None) -> Lab:
    """The lab that is meant: the one named, or the person's only one.

    Raises:
        NotFoundError: not a lab of this person.
        InvalidInputError: none is named, and the person has none or several.
    """
    labs = Lab.objects.filter(memberships__user=user)
    if lab_id is not None:
        lab: Lab | None = labs.filter(pk=lab_id).first()
        if lab is None:
            raise NotFoundError("There is no such lab.")
        return lab
    mine = list(labs[:2])
    if len(mine) != 1:
        raise InvalidInputError("lab: say which lab this is for; you are in none or in several.")
    return mine[0]

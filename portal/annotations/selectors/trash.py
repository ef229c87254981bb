"""Reads of ROIs in the trash."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from django.db.models import Count, OuterRef, QuerySet, Subquery

from portal.annotations.models import Roi, RoiAction, RoiRevision
from portal.core.errors import NotFoundError
from portal.labs.models import Lab, Role, User
from portal.labs.selectors import labs_with_role


def rois_in_trash(user: User, *, lab: Lab) -> QuerySet[Roi]:
    """ROIs that were deleted by themselves, the newest first, with ``deleted_by``.

    Those on something that is in the trash come back with it and are not shown.
    """
    labs = labs_with_role(user, at_least=Role.ANNOTATOR)
    last = RoiRevision.objects.filter(roi=OuterRef("pk"), action=RoiAction.DELETE)
    by = last.order_by("-version").values("author__full_name")[:1]
    return (
        Roi.objects.owned_by(user)
        .filter(lab__in=labs, lab=lab, deleted_at__isnull=False)
        .select_related("canvas__case", "label")
        .annotate(deleted_by=Subquery(by))
        .defer("geometry", "foreign", "canvas__levels")
        .order_by("-deleted_at", "id")
    )


def roi_in_trash(user: User, roi_id: uuid.UUID) -> Roi:
    """A deleted ROI; ``NotFoundError`` where it is not deleted, or another lab's."""
    rois = Roi.objects.visible_to(user).filter(deleted_at__isnull=False)
    roi: Roi | None = rois.select_related("canvas").filter(pk=roi_id).first()
    if roi is None:
        raise NotFoundError("There is no such region in the trash.")
    return roi


def rois_of_trash_entries(entry_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Number of ROIs on the canvases of each entry of the trash."""
    rois = Roi.all_objects.live().filter(canvas__trash_entry__in=entry_ids).order_by()
    return dict(rois.values_list("canvas__trash_entry").annotate(number=Count("pk")))

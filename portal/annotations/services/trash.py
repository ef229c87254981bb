"""Deletion of ROIs for good: by a manager, and when their days in the trash are over."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence

from django.db import transaction
from django.db.models import QuerySet

from portal.annotations.events import RoiEvent
from portal.annotations.models import Roi
from portal.archive.rules import require_purge
from portal.archive.selectors.trash import purge_before
from portal.core.errors import NotFoundError
from portal.core.events import events_emit
from portal.labs.models import User

CHUNK = 500  # ROIs in a transaction: saves of others come in between


def roi_purge(*, roi: Roi, user: User) -> None:
    """Delete a deleted ROI for good, with history, vectors, follow-ups. Emits ``roi.purged``."""
    require_purge(user, roi.lab_id)
    if not _purge([roi.pk]):
        raise NotFoundError("This region is no longer in the trash.")


def rois_purge_due() -> int:
    """Delete for good the ROIs that were deleted more than ``TESSERA_TRASH_DAYS`` ago.

    Returns their number. Two processes may run it at once.
    """
    count = 0
    while due := list(_rois_due().values_list("pk", flat=True)[:CHUNK]):
        count += _purge(due)
    return count


def _rois_due() -> QuerySet[Roi]:
    rois: QuerySet[Roi] = Roi.all_objects.filter(deleted_at__lt=purge_before()).order_by()
    return rois


def _purge(ids: Sequence[uuid.UUID]) -> int:
    with transaction.atomic():
        rois = Roi.all_objects.select_for_update().filter(pk__in=ids, deleted_at__isnull=False)
        payloads = defaultdict(list)
        for pk, lab_id, case_id in rois.values_list("pk", "lab_id", "canvas__case_id"):
            payloads[lab_id].append({"roi_id": str(pk), "case_id": str(case_id)})
        for lab_id, of_lab in payloads.items():  # before the rows go, for what hangs on them
            events_emit(RoiEvent.PURGED, lab_id=lab_id, payloads=of_lab)
        gone = [one["roi_id"] for of_lab in payloads.values() for one in of_lab]
        Roi.all_objects.filter(pk__in=gone).delete()
    return len(gone)

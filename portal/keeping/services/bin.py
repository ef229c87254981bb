"""Out of the bin for good: by hand, and when the time is over."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial

from django.db import transaction
from django.db.models import QuerySet

from portal.annotations.models import Roi
from portal.archive import storage
from portal.archive.models import BinEntry
from portal.archive.services import bin_purge
from portal.core.errors import NotFoundError
from portal.core.events import event_emit
from portal.keeping.rules import require_purge
from portal.keeping.selectors import purge_before
from portal.labs.models import User
from portal.mosaics.models import Followup

CHUNK = 500  # ROIs in a transaction: saves of others come in between


def roi_purge(*, roi: Roi, user: User) -> None:
    """Delete a deleted ROI for good, with history, vectors, follow-ups. Emits ``roi.purged``."""
    require_purge(user, roi.lab_id)
    if not _purge([roi.pk]):
        raise NotFoundError("This region is no longer in the bin.")


def bin_purge_due() -> int:
    """Delete for good what has been in the bin for longer than ``TESSERA_BIN_DAYS``.

    Returns how many things went. Safe to run twice at once: what one has purged, the other skips.
    """
    count = 0
    for entry in BinEntry.objects.filter(created_at__lt=purge_before()).order_by("created_at"):
        try:
            bin_purge(entry=entry, user=None)
        except NotFoundError:
            continue  # restored meanwhile, or gone with its case
        count += 1
    while due := list(_rois_due().values_list("pk", flat=True)[:CHUNK]):
        count += _purge(due)
    return count


def _rois_due() -> QuerySet[Roi]:
    rois: QuerySet[Roi] = Roi.everything.filter(deleted_at__lt=purge_before()).order_by()
    return rois


def _purge(ids: Sequence[uuid.UUID]) -> int:
    with transaction.atomic():
        rois = Roi.everything.select_for_update().filter(pk__in=ids, deleted_at__isnull=False)
        found = list(rois.values_list("pk", "lab_id", "canvas__case_id"))
        gone = [pk for pk, *_ in found]
        for pk in Followup.everything.filter(roi__in=gone).values_list("pk", flat=True):
            transaction.on_commit(partial(storage.folder_drop, storage.derived_folder(pk)))
        Roi.everything.filter(pk__in=gone).delete()
        for pk, lab_id, case_id in found:
            event_emit(
                "roi.purged", lab_id=lab_id, payload={"roi_id": str(pk), "case_id": str(case_id)}
            )
    return len(gone)

"""Deletion of ROIs and events for good: by a manager, and when their days in the trash are over."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from portal.annotations.events import RoiEvent, VideoEventChange
from portal.annotations.models import Roi, VideoEvent
from portal.archive.rules import require_purge
from portal.archive.selectors.trash import purge_before
from portal.core.errors import NotFoundError
from portal.core.events import events_emit
from portal.labs.models import User

CHUNK = 500  # rows in a transaction: saves of others come in between


@dataclass(frozen=True, slots=True)
class Purger:
    """Deletion of a model's deleted rows for good.

    Attributes:
        event: Emitted for each row, before it goes.
        key: Name of the row's id in the payload.
    """

    model: type[Roi] | type[VideoEvent]
    event: RoiEvent | VideoEventChange
    key: str

    def purge(self, row: Roi | VideoEvent, *, user: User) -> None:
        """Delete a row with all that hangs on it; managers only.

        Raises:
            ForbiddenError.
            NotFoundError: it is not in the trash.
        """
        require_purge(user, row.lab_id)
        if not self._purge([row.pk]):
            raise NotFoundError("This is no longer in the trash.")

    def purge_due(self) -> int:
        """Delete the rows that were deleted more than ``TESSERA_TRASH_DAYS`` ago.

        Returns their number. Two processes may run it at once.
        """
        overdue = self.model.all_objects.filter(deleted_at__lt=purge_before()).order_by()
        count = 0
        while ids := list(overdue.values_list("pk", flat=True)[:CHUNK]):
            count += self._purge(ids)
        return count

    def _purge(self, ids: Sequence[uuid.UUID]) -> int:
        with transaction.atomic():
            rows = self.model.all_objects.select_for_update().filter(
                pk__in=ids, deleted_at__isnull=False
            )
            payloads = defaultdict(list)
            for pk, lab_id, case_id in rows.values_list("pk", "lab_id", "canvas__case_id"):
                payloads[lab_id].append({self.key: str(pk), "case_id": str(case_id)})
            # Before the rows are deleted, for receivers that need them.
            for lab_id, of_lab in payloads.items():
                events_emit(self.event, lab_id=lab_id, payloads=of_lab)
            purged_ids = [payload[self.key] for of_lab in payloads.values() for payload in of_lab]
            self.model.all_objects.filter(pk__in=purged_ids).delete()
        return len(purged_ids)


ROI_PURGER = Purger(Roi, RoiEvent.PURGED, "roi_id")
VIDEO_EVENT_PURGER = Purger(VideoEvent, VideoEventChange.PURGED, "video_event_id")

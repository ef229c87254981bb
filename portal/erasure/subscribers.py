"""Handlers of events in erasure."""

from __future__ import annotations

from portal.archive.events import ArchiveEvent
from portal.core.events import subscribe
from portal.core.models import Event
from portal.erasure.services.erasures import require_not_erasing


@subscribe(ArchiveEvent.TRASH_RESTORED)
def refuse_cases_being_erased(event: Event) -> None:
    """Refuse to restore a case that is being erased."""
    require_not_erasing(payload=event.payload)

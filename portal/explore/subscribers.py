"""Event handlers: tissue samples depend on how a canvas is read."""

from __future__ import annotations

import uuid

from portal.archive.events import ArchiveEvent
from portal.core.events import subscribe
from portal.core.models import Event
from portal.explore.services.similar_regions import samples_delete


@subscribe(ArchiveEvent.CANVAS_SCALED)
@subscribe(ArchiveEvent.DISPLAY_RANGE_SET)
@subscribe(ArchiveEvent.MODALITY_SET)
def forget_samples_of_canvas(event: Event) -> None:
    """Delete the vectors of a canvas whose scale or display range has changed."""
    samples_delete(canvas_id=uuid.UUID(event.payload["canvas_id"]))

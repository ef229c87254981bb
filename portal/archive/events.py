"""Names of the events of the archive."""

from __future__ import annotations

from enum import StrEnum


class ArchiveEvent(StrEnum):
    """Emitted by ``portal.archive``; those that other apps subscribe to."""

    TRASH_PUT = "trash.put"
    TRASH_RESTORED = "trash.restored"
    TRASH_PURGING = "trash.purging"
    CASE_MODALITY_SET = "case.modality_set"
    CANVAS_SCALED = "canvas.scaled"
    DISPLAY_RANGE_SET = "canvas.display_range_set"
    MODALITY_SET = "canvas.modality_set"
    ITEM_RENAMED = "item.renamed"
    QUARANTINE_PUT = "quarantine.put"
    QUARANTINE_RETRIED = "quarantine.retried"
    QUARANTINE_REDACTED = "quarantine.redacted"
    QUARANTINE_RELEASED = "quarantine.released"
    SLIDE_READY = "slide.ready"
    VIDEO_READY = "video.ready"

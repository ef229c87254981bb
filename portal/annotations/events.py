"""Names of the events of ROIs."""

from __future__ import annotations

from enum import StrEnum


class RoiEvent(StrEnum):
    """Emitted by ``portal.annotations``; those that other apps subscribe to."""

    SAVED = "roi.saved"
    DELETED = "roi.deleted"
    PURGED = "roi.purged"
    SAVED_IN_BULK = "rois.saved_in_bulk"


class VideoEventChange(StrEnum):
    """Emitted when an event of a video is written."""

    SAVED = "video_event.saved"
    DELETED = "video_event.deleted"
    PURGED = "video_event.purged"

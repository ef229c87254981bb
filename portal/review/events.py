"""Names of the events of review."""

from __future__ import annotations

from enum import StrEnum


class ReviewEvent(StrEnum):
    """Emitted by ``portal.review``; those that other apps subscribe to."""

    COMMENTED = "roi.commented"

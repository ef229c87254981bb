"""Reads of review. All begin with what the person may see."""

from portal.review.selectors.live import (
    CanvasNow,
    OpenPage,
    Person,
    RoiChanged,
    canvas_now,
    changes_since,
    pages_open,
    people_met,
)
from portal.review.selectors.queue import QueueFilter, queue_people, review_queue
from portal.review.selectors.threads import ThreadEntry, comment_entry, thread_of

__all__ = [
    "CanvasNow",
    "OpenPage",
    "Person",
    "QueueFilter",
    "RoiChanged",
    "ThreadEntry",
    "canvas_now",
    "changes_since",
    "comment_entry",
    "pages_open",
    "people_met",
    "queue_people",
    "review_queue",
    "thread_of",
]

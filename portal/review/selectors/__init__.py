"""Reads of review. All begin with what the person may see."""

from portal.review.selectors.live import CanvasNow, Person, RoiChanged, canvas_now
from portal.review.selectors.queue import QueueFilter, queue_people, review_queue
from portal.review.selectors.threads import ThreadEntry, thread_of

__all__ = [
    "CanvasNow",
    "Person",
    "QueueFilter",
    "RoiChanged",
    "ThreadEntry",
    "canvas_now",
    "queue_people",
    "review_queue",
    "thread_of",
]

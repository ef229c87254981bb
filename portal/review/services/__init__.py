"""Writes of review."""

from portal.review.services.comments import comment_add
from portal.review.services.presence import presence_end, presence_note
from portal.review.services.verdicts import MOST_AT_ONCE, RoiVerdict, rois_review

__all__ = [
    "MOST_AT_ONCE",
    "RoiVerdict",
    "comment_add",
    "presence_end",
    "presence_note",
    "rois_review",
]

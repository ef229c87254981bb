"""The thread of an ROI: its steps of review and what was said, in order of time."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from portal.annotations.models import ReviewState, Roi, RoiRevision
from portal.review.models import RoiComment

COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class ThreadEntry:
    """A step, or a comment.

    Attributes:
        id: of the revision that made the step, or of the comment.
        kind: ``comment``, or the state of review that the step led to.
        text: what was said; empty for a step without words.
        author: a name; None if the account is gone.
    """

    id: uuid.UUID
    kind: str
    text: str
    version: int
    author: str | None
    at: datetime

    @property
    def place(self) -> tuple[str, int, str]:
        """In the thread: no two entries have the same."""
        at = self.at.astimezone(UTC).isoformat(timespec="microseconds")
        return at, self.version, str(self.id)


def thread_of(roi: Roi) -> list[ThreadEntry]:
    """Steps come from the revisions, so none is missing. Call with an ROI found visible."""
    comments = list(RoiComment.objects.filter(roi=roi).select_related("author"))
    words = {one.version: one.text for one in comments if one.goes_with_verdict}
    revisions = (
        RoiRevision.objects.filter(roi=roi)
        .select_related("author")
        .only("version", "review_state", "created_at", "author")
        .order_by("version")
    )
    entries, before = [], str(ReviewState.DRAFT)
    for one in revisions:
        if one.review_state != before:
            text = words.get(one.version, "")
            entries.append(_entry(one.review_state, text, one))
        before = one.review_state
    entries += [comment_entry(one) for one in comments if not one.goes_with_verdict]
    return sorted(entries, key=lambda entry: entry.place)


def comment_entry(comment: RoiComment) -> ThreadEntry:
    """A comment as the thread has it."""
    return _entry(COMMENT, comment.text, comment)


def _entry(kind: str, text: str, row: RoiComment | RoiRevision) -> ThreadEntry:
    author = str(row.author) if row.author else None
    return ThreadEntry(row.pk, kind, text, row.version, author, row.created_at)

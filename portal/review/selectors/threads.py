"""Thread of an ROI: its review steps and comments in chronological order."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from portal.annotations.models import ReviewState, Roi, RoiRevision
from portal.review.models import RoiComment

COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class ThreadEntry:
    """A review step or a comment.

    Attributes:
        id: Id of the revision of a step, or of the comment.
        kind: ``comment``, or the review state after the step.
        text: Text of the comment; empty for a step without one.
        mentions: Mentions of members in the text, as written.
        author: Name; None if the account no longer exists.
    """

    id: uuid.UUID
    kind: str
    text: str
    version: int
    author: str | None
    at: datetime
    mentions: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[str, int, str]:
        """Unique sort key in the thread."""
        at = self.at.astimezone(UTC).isoformat(timespec="microseconds")
        return at, self.version, str(self.id)


def thread_of(roi: Roi) -> list[ThreadEntry]:
    """Thread of a visible ROI; the review steps come from its revisions, so none is missing."""
    comments = list(RoiComment.objects.filter(roi=roi).select_related("author"))
    explained = {comment.version: comment for comment in comments if comment.goes_with_verdict}
    revisions = (
        RoiRevision.objects.filter(roi=roi)
        .select_related("author")
        .only("version", "review_state", "created_at", "author")
        .order_by("version")
    )
    entries, before = [], str(ReviewState.DRAFT)
    for revision in revisions:
        if revision.review_state != before:
            entries.append(_entry(revision.review_state, explained.get(revision.version), revision))
        before = revision.review_state
    entries += [comment_entry(comment) for comment in comments if not comment.goes_with_verdict]
    return sorted(entries, key=lambda entry: entry.place)


def comment_entry(comment: RoiComment) -> ThreadEntry:
    """A comment as an entry of the thread."""
    return _entry(COMMENT, comment, comment)


def _entry(kind: str, comment: RoiComment | None, row: RoiComment | RoiRevision) -> ThreadEntry:
    author = str(row.author) if row.author else None
    text, mentions = (comment.text, tuple(comment.mentions)) if comment else ("", ())
    return ThreadEntry(row.pk, kind, text, row.version, author, row.created_at, mentions)

"""Comments on an ROI."""

from __future__ import annotations

from django.db import transaction

from portal.annotations.models import Roi
from portal.annotations.rules import require_annotate
from portal.core.errors import InvalidInputError
from portal.core.events import event_emit
from portal.labs.models import User
from portal.review.events import ReviewEvent
from portal.review.models import COMMENT_MAX, RoiComment
from portal.review.services.mentions import mentions_in


def comment_add(*, roi: Roi, user: User, text: str) -> RoiComment:
    """Comment on the current version of an ROI; emits ``roi.commented``.

    Raises:
        ForbiddenError: the user is not an annotator.
        InvalidInputError: the text is empty or too long.
    """
    require_annotate(user, roi.lab_id)
    return comment_write(roi=roi, user=user, text=comment_clean(text))


def comment_clean(text: str, *, may_be_empty: bool = False) -> str:
    """Strip the text. Raises ``InvalidInputError`` if it is empty or too long."""
    text = text.strip()
    min_length = 0 if may_be_empty else 1
    if not min_length <= len(text) <= COMMENT_MAX:
        raise InvalidInputError(
            f"text: expected {min_length} to {COMMENT_MAX:,} characters, got {len(text):,}."
        )
    return text


def comment_write(
    *, roi: Roi, user: User, text: str, goes_with_verdict: bool = False
) -> RoiComment:
    """Write the row with its event; the caller checks rights and text."""
    mentions = mentions_in(text, lab_id=roi.lab_id)
    with transaction.atomic():
        comment: RoiComment = RoiComment.objects.create(
            lab_id=roi.lab_id,
            roi=roi,
            version=roi.version,
            text=text,
            mentions=list(mentions.texts),
            goes_with_verdict=goes_with_verdict,
            author=user,
        )
        payload = {
            "roi_id": str(roi.pk),
            "canvas_id": str(roi.canvas_id),
            "case_id": str(roi.canvas.case_id),
            "version": roi.version,
            "comment_id": str(comment.pk),
            "user_id": str(user.pk),
            "goes_with_verdict": goes_with_verdict,
            "mentioned": sorted(map(str, mentions.user_ids)),
        }
        event_emit(ReviewEvent.COMMENTED, lab_id=roi.lab_id, payload=payload)
    return comment

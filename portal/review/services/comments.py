"""Comments on an ROI."""

from __future__ import annotations

from django.db import transaction

from portal.annotations.models import Roi
from portal.annotations.rules import require_annotate
from portal.core.errors import InvalidInputError
from portal.core.events import event_emit
from portal.labs.models import User
from portal.review.models import COMMENT_MAX, RoiComment


def comment_add(*, roi: Roi, user: User, text: str) -> RoiComment:
    """Comment on an ROI as it is now; emits ``roi.commented``.

    Raises:
        ForbiddenError: less than an annotator. InvalidInputError: nothing said, or too much.
    """
    require_annotate(user, roi.lab_id)
    return comment_write(roi=roi, user=user, text=comment_clean(text))


def comment_clean(text: str, *, may_be_empty: bool = False) -> str:
    """Without spaces around it. ``InvalidInputError`` for nothing at all, or too much."""
    text = text.strip()
    least = 0 if may_be_empty else 1
    if not least <= len(text) <= COMMENT_MAX:
        raise InvalidInputError(
            f"text: expected {least} to {COMMENT_MAX:,} characters, got {len(text):,}."
        )
    return text


def comment_write(
    *, roi: Roi, user: User, text: str, goes_with_verdict: bool = False
) -> RoiComment:
    """Write the row with its event; rights and text are the caller's matter."""
    with transaction.atomic():
        comment: RoiComment = RoiComment.objects.create(
            lab_id=roi.lab_id,
            roi=roi,
            version=roi.version,
            text=text,
            goes_with_verdict=goes_with_verdict,
            author=user,
        )
        payload = {
            "roi_id": str(roi.pk),
            "canvas_id": str(roi.canvas_id),
            "case_id": str(roi.canvas.case_id),
            "version": roi.version,
        }
        event_emit("roi.commented", lab_id=roi.lab_id, payload=payload)
    return comment

"""Review steps, independent for each ROI: a stale one does not prevent the others."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from portal.annotations.models import ReviewState, Roi
from portal.annotations.services.fields import RoiChanges
from portal.annotations.services.rois import roi_update
from portal.core.errors import InvalidInputError, PortalError
from portal.labs.models import User
from portal.review.services.comments import comment_clean, comment_write

MAX_VERDICTS = 500  # in a request


@dataclass(frozen=True, slots=True)
class RoiVerdict:
    """Result of reviewing one ROI.

    Attributes:
        outcome: ``done``, ``unchanged`` (it had this state already), or the code of a problem:
            ``stale-version``, ``not-submitted``, ``own-roi``, ``forbidden``, ``not-found``.
        detail: The problem as a sentence.
        version: Current version; None if there is no such ROI.
    """

    roi_id: uuid.UUID
    outcome: str
    detail: str = ""
    version: int | None = None


@dataclass(frozen=True, slots=True)
class _Step:
    user: User
    state: str
    text: str


def rois_review(
    *, user: User, rois: Sequence[tuple[uuid.UUID, int]], state: str, comment: str = ""
) -> list[RoiVerdict]:
    """Set the review state of ROIs; each changed one gets a revision and emits ``roi.saved``.

    Args:
        rois: Id and reviewed version of each, 1 to ``MAX_VERDICTS``.
        comment: Added to each of them.

    Raises:
        InvalidInputError: unknown state, too many ROIs, or too long a comment.
    """
    if state not in ReviewState.values:
        raise InvalidInputError(f"state: one of {', '.join(ReviewState.values)}.")
    if not 0 < len(rois) <= MAX_VERDICTS:
        raise InvalidInputError(
            f"rois: expected 1 to {MAX_VERDICTS} in one request, got {len(rois):,}."
        )
    text = comment_clean(comment, may_be_empty=True)
    rows = Roi.objects.owned_by(user).live().filter(pk__in=[roi_id for roi_id, _ in rois])
    rois_by_id = rows.select_related("canvas").defer("foreign").in_bulk()
    step = _Step(user, state, text)
    return [_verdict(rois_by_id.get(roi_id), roi_id, version, step) for roi_id, version in rois]


def _verdict(roi: Roi | None, roi_id: uuid.UUID, version: int, step: _Step) -> RoiVerdict:
    if roi is None:
        return RoiVerdict(roi_id, "not-found", "This region no longer exists.")
    user, text, changes = step.user, step.text, RoiChanges(review_state=step.state)
    try:
        with transaction.atomic():
            saved = roi_update(roi=roi, user=user, expected_version=version, changes=changes)
            if saved.changed and text:
                comment_write(roi=roi, user=user, text=text, goes_with_verdict=True)
    except PortalError as error:
        now = error.details.get("current_version", roi.version)
        return RoiVerdict(roi_id, error.code, error.message, now)
    return RoiVerdict(roi_id, "done" if saved.changed else "unchanged", version=roi.version)

"""Reads of review: a lab's rules, and whose work an ROI is."""

from __future__ import annotations

import uuid

from portal.annotations.models import ReviewRules, ReviewState, Roi, RoiRevision
from portal.labs.models import User


def review_rules_of(lab_id: uuid.UUID) -> ReviewRules:
    """The lab's rules; the defaults, unsaved, where it has none of its own."""
    found: ReviewRules | None = ReviewRules.objects.filter(lab_id=lab_id).first()
    return found or ReviewRules(lab_id=lab_id)


def is_own(roi: Roi, user: User) -> bool:
    """Whether the person drew the ROI, or made a revision of it that is a draft.

    A new outline or label leaves a draft, unless submitted at once; so does any change of one.
    """
    if roi.created_by_id == user.pk:
        return True
    mine = RoiRevision.objects.filter(roi=roi, author=user, review_state=ReviewState.DRAFT)
    return bool(mine.exists())

"""Review: which step from draft to accepted or rejected a person may take."""

from __future__ import annotations

from django.db import transaction

from portal.annotations.models import ReviewRules, ReviewState, Roi
from portal.annotations.rules import require_manage_labels, require_review
from portal.annotations.selectors.reviewing import is_own, review_rules_of
from portal.annotations.services.fields import REVIEWED, RoiColumns
from portal.core.errors import ConflictError, ForbiddenError
from portal.core.events import event_emit
from portal.labs.models import Lab, User

JUDGED = (ReviewState.ACCEPTED, ReviewState.REJECTED)


def require_step(roi: Roi, user: User, fields: RoiColumns) -> None:
    """Raise unless the user may change the ROI to ``fields["review_state"]``.

    Annotators submit and withdraw; reviewers accept and reject submitted ROIs.

    Args:
        fields: All columns that the same change writes.

    Raises:
        ConflictError: a draft cannot be reviewed.
        ForbiddenError: not a reviewer, or the user's own ROI where the lab excludes those.
    """
    if fields["review_state"] not in JUDGED:
        return
    require_review(user, roi.lab_id)
    if roi.review_state == ReviewState.DRAFT:
        raise ConflictError(
            "A draft cannot be accepted or rejected. Submit it first.", code="not-submitted"
        )
    if review_rules_of(roi.lab_id).may_judge_own:
        return
    if REVIEWED & fields.keys() or is_own(roi, user):
        raise ForbiddenError(
            "In this lab, somebody else has to accept or reject what you drew or changed.",
            code="own-roi",
        )


def review_rules_set(*, lab: Lab, user: User, may_judge_own: bool) -> ReviewRules:
    """Set how a lab reviews; emits ``review_rules.changed``. ``ForbiddenError``: not a manager."""
    require_manage_labels(user, lab.pk)
    with transaction.atomic():
        rules, _ = ReviewRules.objects.update_or_create(
            lab=lab, defaults={"may_judge_own": may_judge_own}
        )
        payload = {"lab_id": str(lab.pk), "user_id": str(user.pk), "may_judge_own": may_judge_own}
        event_emit("review_rules.changed", lab_id=lab.pk, payload=payload)
    return rules

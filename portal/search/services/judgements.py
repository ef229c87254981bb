"""Store a person's judgements of hits."""

from __future__ import annotations

import uuid

from django.db import transaction

from portal.annotations.models import Roi
from portal.annotations.selectors.rois import roi_get
from portal.core.errors import InvalidInputError, NotFoundError
from portal.labs.models import Role, User
from portal.labs.rules import require_role
from portal.search.models import Judgement, Verdict


def judgement_set(*, roi: Roi, other_id: uuid.UUID, verdict: Verdict, user: User) -> Judgement:
    """Judge a region to be like the ROI, or not; the last judgement counts.

    Raises:
        ForbiddenError: The user is less than an annotator of the ROI's lab.
        NotFoundError: No such region in that lab.
        InvalidInputError: The region is the ROI itself.
    """
    require_role(user, roi.lab_id, at_least=Role.ANNOTATOR)
    other = _judged_roi(roi, other_id, user)
    with transaction.atomic():
        judgement, _ = Judgement.objects.update_or_create(
            roi=roi, other=other, user=user, defaults={"verdict": verdict, "lab_id": roi.lab_id}
        )
    return judgement


def judgement_clear(*, roi: Roi, other_id: uuid.UUID, user: User) -> None:
    """Delete a judgement, if there is one. Raises as ``judgement_set``."""
    require_role(user, roi.lab_id, at_least=Role.ANNOTATOR)
    other = _judged_roi(roi, other_id, user)
    Judgement.objects.owned_by(user).filter(roi=roi, other=other, user=user).delete()


def _judged_roi(roi: Roi, other_id: uuid.UUID, user: User) -> Roi:
    other = roi_get(user, other_id, with_shared=False)
    if other.lab_id != roi.lab_id or other.deleted_at is not None:
        raise NotFoundError("There is no such region in this lab.")
    if other.pk == roi.pk:
        raise InvalidInputError("other: a region cannot be compared with itself.")
    return other

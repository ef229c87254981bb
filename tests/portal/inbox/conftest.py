"""A canvas with a region of the annotator, submitted for review."""

from __future__ import annotations

import pytest

from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas
from portal.labs.models import Lab, Membership, User
from portal.review.services.verdicts import rois_review
from tests.portal.annotations.support import box


@pytest.fixture
def roi(canvas: Canvas, annotator: User) -> Roi:
    """Submitted by the annotator, at version 2."""
    drawn = roi_create(canvas=canvas, user=annotator, geometry=box(10, 10, 110, 60)).roi
    rois_review(user=annotator, rois=[(drawn.pk, 1)], state="submitted")
    drawn.refresh_from_db()
    return drawn


@pytest.fixture
def anna(lab: Lab) -> User:
    """An annotator with a name."""
    user = User.objects.create_user("anna@north.example", "correct horse battery")
    User.objects.filter(pk=user.pk).update(full_name="Anna Berg")
    user.refresh_from_db()
    Membership.objects.create(user=user, lab=lab, role="annotator")
    return user


def reject(roi: Roi, by: User, reason: str = "") -> None:
    """Reject the current version of a region."""
    roi.refresh_from_db()
    wanted = [(roi.pk, roi.version)]
    (verdict,) = rois_review(user=by, rois=wanted, state="rejected", comment=reason)
    assert verdict.outcome == "done", verdict
    roi.refresh_from_db()

"""A canvas with a region that waits for its verdict."""

from __future__ import annotations

import pytest

from portal.annotations.models import Label, Roi
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas
from portal.labs.models import User
from portal.review.services.verdicts import rois_review
from tests.portal.annotations.support import box


@pytest.fixture
def roi(canvas: Canvas, annotator: User, label: Label) -> Roi:
    """Submitted by the annotator, at version 2."""
    geometry = box(10, 10, 110, 60)
    drawn = roi_create(canvas=canvas, user=annotator, geometry=geometry, label=label).roi
    rois_review(user=annotator, rois=[(drawn.pk, 1)], state="submitted")
    drawn.refresh_from_db()
    return drawn

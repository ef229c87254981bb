"""A locked ROI stays as it is until it is unlocked; ellipses stay ellipses while they are."""

from __future__ import annotations

import pytest

from portal.annotations.models import ReviewState, Roi, RoiRevision
from portal.annotations.services.fields import RoiChanges
from portal.annotations.services.rois import roi_create, roi_delete, roi_update
from portal.archive.models import Canvas
from portal.core.errors import ConflictError, InvalidInputError
from portal.labs.models import User
from tests.portal.annotations.support import box, ellipse


@pytest.fixture
def locked(roi: Roi, annotator: User) -> Roi:
    changes: RoiChanges = {"is_locked": True}
    return roi_update(roi=roi, user=annotator, expected_version=1, changes=changes).roi


@pytest.mark.parametrize(
    "changes", [{"name": "x"}, {"geometry": box(0, 0, 9, 9)}, {"name": "x", "is_locked": True}]
)
def test_a_locked_roi_is_not_changed(locked: Roi, annotator: User, changes: RoiChanges) -> None:
    with pytest.raises(ConflictError, match="locked"):
        roi_update(roi=locked, user=annotator, expected_version=2, changes=changes)
    assert Roi.objects.get().version == 2


def test_a_locked_roi_is_not_deleted(locked: Roi, annotator: User) -> None:
    with pytest.raises(ConflictError, match="locked"):
        roi_delete(roi=locked, user=annotator, expected_version=2)
    assert Roi.objects.live().exists()


def test_unlocking_may_change_it_in_the_same_step(locked: Roi, annotator: User) -> None:
    changes: RoiChanges = {"is_locked": False, "name": "free"}
    roi_update(roi=locked, user=annotator, expected_version=2, changes=changes)
    states = RoiRevision.objects.values_list("is_locked", "name").order_by("version")
    assert list(states) == [(False, ""), (True, ""), (False, "free")]


def test_a_locked_roi_is_still_reviewed(locked: Roi, reviewer: User) -> None:
    for version, state in enumerate((ReviewState.SUBMITTED, ReviewState.ACCEPTED), start=2):
        changes: RoiChanges = {"review_state": state}
        roi_update(roi=locked, user=reviewer, expected_version=version, changes=changes)
    assert Roi.objects.get().review_state == ReviewState.ACCEPTED


def test_an_ellipse_is_stored_as_one_and_an_outline_without_a_shape_is_a_polygon(
    canvas: Canvas, annotator: User
) -> None:
    roi = roi_create(
        canvas=canvas, user=annotator, geometry=ellipse(200, 200, 80, 40), kind="ellipse"
    ).roi
    assert roi.shape == "ellipse"
    changes: RoiChanges = {"geometry": ellipse(220, 200, 80, 40), "shape": "ellipse"}
    roi_update(roi=roi, user=annotator, expected_version=1, changes=changes)
    assert Roi.objects.get().shape == "ellipse"
    changes = {"geometry": ellipse(240, 200, 80, 40)}
    roi_update(roi=roi, user=annotator, expected_version=2, changes=changes)
    assert Roi.objects.get().shape == "polygon"


def test_an_ellipse_that_the_edge_cuts_is_a_polygon(canvas: Canvas, annotator: User) -> None:
    outline = ellipse(10, 200, 80, 40)
    roi = roi_create(canvas=canvas, user=annotator, geometry=outline, kind="ellipse").roi
    assert roi.shape == "polygon"


def test_an_unknown_shape_is_refused(canvas: Canvas, annotator: User) -> None:
    with pytest.raises(InvalidInputError, match="polygon, ellipse"):
        roi_create(canvas=canvas, user=annotator, geometry=box(0, 0, 9, 9), kind="circle")

"""Draft, submitted, accepted or rejected: who may take which step, and what is kept of it."""

from __future__ import annotations

from typing import Any

import pytest

from portal.annotations.models import Label, Roi, RoiRevision
from portal.annotations.services.fields import RoiChanges
from portal.annotations.services.labels import label_create
from portal.annotations.services.merges import label_merge
from portal.annotations.services.reviewing import review_rules_set
from portal.annotations.services.rois import roi_create, roi_update
from portal.archive.models import Canvas
from portal.core.errors import ForbiddenError, InvalidInputError
from portal.labs.models import Lab, User
from portal.review.models import RoiComment
from portal.review.selectors.threads import thread_of
from portal.review.services.comments import comment_add
from portal.review.services.verdicts import RoiVerdict, rois_review
from tests.portal.annotations.support import box


def judged(user: User, roi: Roi, state: str, version: int, comment: str = "") -> RoiVerdict:
    return rois_review(user=user, rois=[(roi.pk, version)], state=state, comment=comment)[0]


def test_a_verdict_is_a_revision_with_who_and_when(roi: Roi, reviewer: User) -> None:
    assert judged(reviewer, roi, "rejected", 2, " Too wide. ").outcome == "done"
    last = RoiRevision.objects.filter(roi=roi).latest("version")
    assert (last.version, last.review_state, last.author) == (3, "rejected", reviewer)
    assert last.created_at is not None


def test_the_thread_lists_steps_and_comments_in_order(
    roi: Roi, annotator: User, reviewer: User
) -> None:
    judged(reviewer, roi, "rejected", 2, "Too wide.")
    roi.refresh_from_db()
    comment_add(roi=roi, user=annotator, text="Narrower now.")
    roi_update(
        roi=roi, user=annotator, expected_version=3, changes={"geometry": box(20, 10, 90, 60)}
    )
    judged(annotator, roi, "submitted", 4)
    judged(reviewer, roi, "accepted", 5)
    thread = [(comment.kind, comment.text, comment.version) for comment in thread_of(roi)]
    assert thread == [
        ("submitted", "", 2),
        ("rejected", "Too wide.", 3),
        ("comment", "Narrower now.", 3),
        ("draft", "", 4),
        ("submitted", "", 5),
        ("accepted", "", 6),
    ]
    assert [comment.author for comment in thread_of(roi)][:2] == [str(annotator), str(reviewer)]


def test_a_draft_cannot_be_judged_and_an_annotator_cannot_judge(
    canvas: Canvas, roi: Roi, annotator: User, reviewer: User
) -> None:
    draft = roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9)).roi
    assert judged(reviewer, draft, "accepted", 1).outcome == "not-submitted"
    assert judged(annotator, roi, "accepted", 2).outcome == "forbidden"
    assert RoiComment.objects.count() == 0


def test_a_verdict_on_an_older_version_is_left_out_and_stops_no_other(
    canvas: Canvas, roi: Roi, annotator: User, reviewer: User
) -> None:
    other = roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9)).roi
    judged(annotator, other, "submitted", 1)
    first, second = rois_review(
        user=reviewer, rois=[(roi.pk, 1), (other.pk, 2)], state="accepted", comment="Fine."
    )
    assert (first.outcome, first.version, second.outcome) == ("stale-version", 2, "done")
    assert [comment.roi_id for comment in RoiComment.objects.all()] == [other.pk]


def test_a_verdict_sent_twice_counts_once(roi: Roi, reviewer: User) -> None:
    judged(reviewer, roi, "accepted", 2, "Fine.")
    again = judged(reviewer, roi, "accepted", 3, "Fine.")
    assert (again.outcome, again.version) == ("unchanged", 3)
    assert RoiComment.objects.count() == 1


def test_a_lab_may_require_a_second_person_to_judge(
    lab: Lab, canvas: Canvas, reviewer: User, manager: User, label: Label
) -> None:
    roi = roi_create(canvas=canvas, user=reviewer, geometry=box(1, 1, 9, 9)).roi
    judged(reviewer, roi, "submitted", 1)
    review_rules_set(lab=lab, user=manager, may_judge_own=False)
    assert judged(reviewer, roi, "accepted", 2).outcome == "own-roi"
    roi.refresh_from_db()
    # Whoever corrected it has made it their own as well.
    roi_update(roi=roi, user=manager, expected_version=2, changes={"label": label})
    judged(reviewer, roi, "submitted", 3)
    assert judged(manager, roi, "accepted", 4).outcome == "own-roi"
    review_rules_set(lab=lab, user=manager, may_judge_own=True)
    assert judged(reviewer, roi, "accepted", 4).outcome == "done"


@pytest.mark.parametrize("changed_field", ["geometry", "label"])
def test_changing_and_submitting_at_once_changes_the_author(
    lab: Lab,
    canvas: Canvas,
    annotator: User,
    reviewer: User,
    manager: User,
    label: Label,
    changed_field: str,
) -> None:
    review_rules_set(lab=lab, user=manager, may_judge_own=False)
    drawn = roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9)).roi
    changes = RoiChanges(review_state="submitted")
    if changed_field == "geometry":
        changes["geometry"] = box(2, 2, 9, 9)
    else:
        changes["label"] = label
    roi_update(roi=drawn, user=reviewer, expected_version=1, changes=changes)
    assert judged(reviewer, drawn, "accepted", 2).outcome == "own-roi"
    assert judged(manager, drawn, "accepted", 2).outcome == "done"


def test_submitting_without_a_change_does_not_change_the_author(
    lab: Lab, canvas: Canvas, annotator: User, reviewer: User, manager: User, label: Label
) -> None:
    review_rules_set(lab=lab, user=manager, may_judge_own=False)
    drawn = roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9), label=label).roi
    roi_update(roi=drawn, user=reviewer, expected_version=1, changes={"name": "gland"})
    other = label_create(lab=lab, user=manager, name="Gland")
    label_merge(source=label, target=other, user=manager)
    judged(annotator, drawn, "submitted", 3)
    assert judged(reviewer, drawn, "rejected", 4).outcome == "done"
    assert judged(manager, drawn, "accepted", 5).outcome == "done"


def test_a_correction_and_its_acceptance_are_not_one_step_there(
    lab: Lab, roi: Roi, reviewer: User, manager: User
) -> None:
    review_rules_set(lab=lab, user=manager, may_judge_own=False)
    with pytest.raises(ForbiddenError, match="somebody else"):
        roi_update(
            roi=roi,
            user=reviewer,
            expected_version=2,
            changes={"geometry": box(0, 0, 5, 5), "review_state": "accepted"},
        )


def test_a_change_of_an_accepted_roi_is_judged_again_even_if_it_names_that_state(
    api_as: Any, roi: Roi, annotator: User, reviewer: User
) -> None:
    def patched(user: User, version: int, **body: Any) -> Any:
        headers = {"If-Match": f'"{version}"'}
        return api_as(user).patch(f"/api/v1/rois/{roi.pk}/", body, headers=headers)

    accepted = {"review_state": "accepted"}
    assert patched(reviewer, 2, **accepted).status_code == 200
    for change in ({"geometry": box(0, 0, 50, 50)}, {"label": None}):
        assert patched(annotator, 3, **change, **accepted).status_code == 403
    same = patched(annotator, 3, **accepted)
    assert (same.status_code, same["ETag"]) == (200, '"3"')
    stored = patched(reviewer, 3, geometry=box(0, 0, 50, 50), **accepted)
    assert (stored.status_code, stored.json()["review_state"]) == (200, "accepted")
    redrawn = patched(annotator, 4, geometry=box(0, 0, 60, 60))
    assert redrawn.json()["review_state"] == "draft"


def test_rois_of_another_lab_are_neither_judged_nor_listed(roi: Roi, stranger: User) -> None:
    verdict = judged(stranger, roi, "accepted", 2)
    assert (verdict.outcome, verdict.version) == ("not-found", None)
    roi.refresh_from_db()
    assert roi.version == 2


@pytest.mark.parametrize("text", ["", "   ", "x" * 2001])
def test_a_comment_is_neither_empty_nor_too_long(roi: Roi, annotator: User, text: str) -> None:
    with pytest.raises(InvalidInputError, match="characters"):
        comment_add(roi=roi, user=annotator, text=text)

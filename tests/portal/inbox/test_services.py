"""Recipients of notifications, and their deletion with their subjects."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from portal.annotations.models import ImportStage, Roi, RoiImport
from portal.annotations.services.rois import roi_create, roi_update
from portal.archive.models import Asset, Canvas, Slide, Upload
from portal.archive.services.gate.quarantine import item_quarantine
from portal.core.errors import InvalidInputError
from portal.core.events import event_emit
from portal.inbox.models import MailChoice, Notification, NotificationPreferences
from portal.inbox.selectors import preferences_of
from portal.inbox.services import (
    KEPT,
    notifications_prune,
    notifications_read,
    preferences_set,
)
from portal.jobs.claims import end_job
from portal.jobs.models import Job, JobState
from portal.labs.models import Lab, Membership, User
from portal.mosaics.models import Mosaic
from portal.reader_studies.services.assignments import (
    ReadingPlan,
    assignment_remove,
    work_assign,
)
from portal.review.services.comments import comment_add
from portal.review.services.verdicts import rois_review
from tests.portal.annotations.conftest import make_canvas
from tests.portal.annotations.support import box
from tests.portal.inbox.conftest import reject
from tests.portal.mosaics.conftest import make_mosaic, make_video

pytestmark = pytest.mark.django_db


def received(user: User) -> list[str]:
    """Kinds of a person's notifications, oldest first."""
    rows = Notification.objects.filter(recipient=user).order_by("created_at")
    return list(rows.values_list("kind", flat=True))


def job_ended(
    lab: Lab, user: User | None, state: JobState, *, kind: str, target: Any, error: str = ""
) -> Job:
    """A job of the user that has ended."""
    job = Job.objects.create(
        lab=lab,
        kind=kind,
        created_by=user,
        target_type=target._meta.model_name,
        target_id=target.pk,
        state=JobState.RUNNING,
    )
    if isinstance(target, RoiImport):
        RoiImport.objects.filter(pk=target.pk).update(job=job)
    rows = Job.objects.filter(pk=job.pk)
    assert end_job(rows, job.pk, state, error_message=error)
    return job


def test_the_author_of_a_rejected_region_reads_the_reason(
    roi: Roi, annotator: User, reviewer: User
) -> None:
    reject(roi, reviewer, "The margin is missing")
    row = Notification.objects.get()
    assert (row.recipient, row.actor, row.kind) == (annotator, reviewer, "region.rejected")
    assert row.roi == roi and row.lab_id == roi.lab_id
    assert row.comment is not None and row.comment.text == "The margin is missing"


def test_a_rejection_without_a_reason_is_notified_as_well(
    roi: Roi, annotator: User, reviewer: User
) -> None:
    roi_update(
        roi=roi, user=reviewer, expected_version=roi.version, changes={"review_state": "rejected"}
    )
    assert received(annotator) == ["region.rejected"]
    assert Notification.objects.get().comment is None


def test_a_later_change_of_a_rejected_region_repeats_no_notification(
    roi: Roi, annotator: User, reviewer: User
) -> None:
    reject(roi, reviewer)
    roi_update(
        roi=roi, user=reviewer, expected_version=roi.version, changes={"description": "small"}
    )
    assert received(annotator) == ["region.rejected"]


def test_a_person_is_not_notified_of_their_own_action(
    canvas: Canvas, lab: Lab, manager: User, anna: User
) -> None:
    roi = roi_create(canvas=canvas, user=manager, geometry=box(10, 10, 110, 60)).roi
    rois_review(user=manager, rois=[(roi.pk, 1)], state="submitted")
    reject(roi, manager, f"Not good enough, @{manager.email}")
    comment_add(roi=roi, user=manager, text="Again")
    work_assign(lab=lab, user=manager, plan=ReadingPlan(canvases=[canvas], people=[manager]))
    assert not Notification.objects.exists()


def test_an_acceptance_is_notified_only_by_its_comment(
    roi: Roi, annotator: User, reviewer: User
) -> None:
    rois_review(user=reviewer, rois=[(roi.pk, roi.version)], state="accepted")
    assert received(annotator) == []


def test_a_comment_notifies_author_and_thread_once(
    roi: Roi, annotator: User, reviewer: User, manager: User, viewer: User
) -> None:
    comment_add(roi=roi, user=reviewer, text="Is this tumour?")
    comment_add(roi=roi, user=reviewer, text="Or stroma?")
    comment_add(roi=roi, user=manager, text="Tumour.")
    assert received(annotator) == ["region.commented"] * 3
    assert received(reviewer) == ["region.commented"]
    assert received(manager) == received(viewer) == []


def test_a_mentioned_member_gets_only_the_mention(
    roi: Roi, annotator: User, reviewer: User, anna: User
) -> None:
    comment_add(roi=roi, user=reviewer, text=f"@anna berg, @{annotator.email}: please look")
    assert received(anna) == ["region.mentioned"]
    assert received(annotator) == ["region.mentioned"], "no second one for the comment"


def test_the_reason_of_a_rejection_may_mention_others(
    roi: Roi, annotator: User, reviewer: User, anna: User
) -> None:
    reject(roi, reviewer, "@Anna Berg has drawn this one before")
    assert received(annotator) == ["region.rejected"]
    assert received(anna) == ["region.mentioned"]


def test_only_active_people_of_the_lab_are_notified(
    roi: Roi, annotator: User, reviewer: User, anna: User, stranger: User
) -> None:
    User.objects.filter(pk=anna.pk).update(is_active=False)
    comment_add(roi=roi, user=reviewer, text=f"@Anna Berg @{stranger.email}")
    assert received(anna) == received(stranger) == []
    Membership.objects.filter(user=annotator).delete()
    comment_add(roi=roi, user=reviewer, text="Nobody draws any more")
    assert received(annotator) == ["region.commented"]


def test_several_images_assigned_at_once_are_one_notification(
    lab: Lab, canvas: Canvas, manager: User, annotator: User, anna: User
) -> None:
    second = make_canvas(lab, accession="S-2")
    plan = ReadingPlan(canvases=[canvas, second], people=[annotator, anna])
    work_assign(lab=lab, user=manager, plan=plan)
    for person in (annotator, anna):
        row = Notification.objects.get(recipient=person)
        assert (row.kind, row.params, row.assignment) == ("work.assigned", {"count": 2}, None)


def test_the_notification_of_a_removed_assignment_is_deleted(
    lab: Lab, canvas: Canvas, manager: User, annotator: User
) -> None:
    plan = ReadingPlan(canvases=[canvas], people=[annotator])
    (made,) = work_assign(lab=lab, user=manager, plan=plan)
    assert Notification.objects.get().assignment == made
    assignment_remove(assignment=made, user=manager)
    assert not Notification.objects.exists()


@pytest.mark.parametrize(
    ("state", "kinds"),
    [
        (JobState.SUCCEEDED, ["mosaic.finished"]),
        (JobState.FAILED, ["mosaic.failed"]),
        (JobState.CANCELLED, []),
    ],
)
def test_the_user_who_started_a_mosaic_is_notified_of_its_end(
    lab: Lab, annotator: User, manager: User, state: JobState, kinds: list[str]
) -> None:
    mosaic = make_mosaic(make_video(lab, annotator))
    job_ended(lab, annotator, state, kind="mosaic_build", target=mosaic, error="Too dark")
    assert received(annotator) == kinds and received(manager) == []
    for row in Notification.objects.all():
        assert row.mosaic == mosaic
        assert row.params == ({"error": "Too dark"} if state == JobState.FAILED else {})


def test_a_mosaic_without_a_requester_notifies_no_person(lab: Lab, annotator: User) -> None:
    mosaic = make_mosaic(make_video(lab, annotator))
    job_ended(lab, None, JobState.SUCCEEDED, kind="mosaic_build", target=mosaic)
    assert not Notification.objects.exists()


@pytest.mark.parametrize(
    ("stage", "kinds"),
    [(ImportStage.IMPORTED, ["import.finished"]), (ImportStage.PREVIEWED, [])],
)
def test_an_import_is_notified_but_not_its_preview(
    lab: Lab, canvas: Canvas, annotator: User, stage: ImportStage, kinds: list[str]
) -> None:
    row = RoiImport.objects.create(lab=lab, canvas=canvas, author=annotator, stage=stage)
    job_ended(lab, annotator, JobState.SUCCEEDED, kind="rois_import", target=row)
    assert received(annotator) == kinds


def test_an_import_of_a_case_is_notified(lab: Lab, manager: User) -> None:
    crate = Upload.objects.create(lab=lab, filename="case.zip", created_by=manager)
    job_ended(lab, manager, JobState.FAILED, kind="case_import", target=crate, error="No crate")
    row = Notification.objects.get()
    assert (row.kind, row.upload, row.params) == ("import.failed", crate, {"error": "No crate"})


@pytest.fixture
def held(lab: Lab, annotator: User) -> Upload:
    """A file that was put into quarantine."""
    case = make_canvas(lab).case
    asset = Asset.objects.create(lab=lab, sha256="a" * 64, size_bytes=1, media_type="image/png")
    upload = Upload.objects.create(
        lab=lab, case=case, asset=asset, filename="cut.png", created_by=annotator, state="stored"
    )
    item = Slide.objects.create(lab=lab, case=case, asset=asset, name="cut")
    assert item_quarantine(item=item, code="corrupt-file", message="It ends too early.")
    upload.refresh_from_db()
    return upload


def test_quarantine_is_notified_to_the_managers_of_the_lab(
    manager: User, annotator: User, stranger: User, held: Upload
) -> None:
    assert received(manager) == ["file.quarantined"]
    assert Notification.objects.get().upload == held
    assert received(annotator) == received(stranger) == []


@pytest.mark.parametrize("event", ["quarantine.retried", "quarantine.released"])
def test_a_file_that_left_quarantine_needs_no_notification(
    manager: User, held: Upload, event: str
) -> None:
    assert received(manager) == ["file.quarantined"]
    event_emit(event, lab_id=held.lab_id, payload={"upload_id": str(held.pk)})
    assert not Notification.objects.exists()


def test_notifications_of_a_deleted_case_are_deleted(roi: Roi, reviewer: User, anna: User) -> None:
    reject(roi, reviewer, "@Anna Berg")
    assert Notification.objects.count() == 2
    roi.canvas.case.delete()
    assert not Notification.objects.exists()


def test_notifications_of_a_deleted_account_are_deleted(
    roi: Roi, annotator: User, reviewer: User
) -> None:
    reject(roi, reviewer)
    preferences_set(user=annotator, mail="never")
    reviewer.delete()
    assert Notification.objects.get().actor is None
    annotator.delete()
    assert not Notification.objects.exists() and not NotificationPreferences.objects.exists()


def test_notifications_are_marked_as_read_once(roi: Roi, annotator: User, reviewer: User) -> None:
    reject(roi, reviewer)
    mine = Notification.objects.visible_to(annotator)
    assert notifications_read(mine) == 1
    at = Notification.objects.get().read_at
    assert at is not None
    assert notifications_read(mine) == 0
    assert Notification.objects.get().read_at == at


def test_old_notifications_are_deleted(roi: Roi, reviewer: User) -> None:
    reject(roi, reviewer)
    comment_add(roi=roi, user=reviewer, text="A comment is no reason of an earlier rejection")
    old = Notification.objects.filter(kind="region.rejected")
    old.update(created_at=timezone.now() - KEPT - timedelta(days=1))
    assert notifications_prune() == 1
    assert Notification.objects.get().kind == "region.commented"


def test_mail_is_sent_daily_unless_a_person_chooses_otherwise(annotator: User) -> None:
    assert preferences_of(annotator).mail == MailChoice.DAILY
    preferences_set(user=annotator, mail="at-once")
    assert preferences_of(annotator).mail == MailChoice.AT_ONCE
    with pytest.raises(InvalidInputError, match="at-once, daily, never"):
        preferences_set(user=annotator, mail="hourly")


def test_notifications_of_a_mosaic_are_deleted_with_it(lab: Lab, annotator: User) -> None:
    mosaic = make_mosaic(make_video(lab, annotator))
    job_ended(lab, annotator, JobState.SUCCEEDED, kind="mosaic_build", target=mosaic)
    Mosaic.objects.filter(pk=mosaic.pk).delete()
    assert not Notification.objects.exists()

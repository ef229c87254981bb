"""Notifications by mail: at once, once a day, never."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from portal.annotations.models import Roi
from portal.inbox.models import Notification
from portal.inbox.sending import (
    MAIL_KIND,
    RECENT,
    mail_at_once_schedule,
    mail_daily_schedule,
)
from portal.inbox.services import preferences_set
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run
from portal.labs.models import Membership, User
from portal.review.services.comments import comment_add
from tests.portal.inbox.conftest import reject

pytestmark = pytest.mark.django_db


def run_jobs() -> None:
    """Run the waiting jobs of mail."""
    for job in Job.objects.filter(kind=MAIL_KIND, state=JobState.QUEUED):
        assert job_run(job.pk)


@pytest.fixture
def rejected(roi: Roi, reviewer: User) -> Roi:
    """A region that was rejected and commented on."""
    reject(roi, reviewer, "Secret words")
    comment_add(roi=roi, user=reviewer, text="More secret words")
    return roi


def test_mail_at_once_is_one_message_without_names_of_cases_or_reasons(
    rejected: Roi, annotator: User, settings: Any
) -> None:
    preferences_set(user=annotator, mail="at-once")
    assert (mail_at_once_schedule(), mail_at_once_schedule()) == (1, 1)
    assert Job.objects.filter(kind=MAIL_KIND).count() == 1
    run_jobs()
    (message,) = mail.outbox
    assert message.to == [annotator.email]
    assert f"{settings.TESSERA_URL}/inbox/" in message.body
    for word in ("Secret", rejected.canvas.name, rejected.canvas.case.accession):
        assert word not in message.body + message.subject
    assert not Job.objects.filter(kind=MAIL_KIND).exists()
    assert mail_at_once_schedule() == 0, "each notification is mailed once"


def test_the_daily_digest_is_the_default_and_skips_read_notifications(
    rejected: Roi, annotator: User
) -> None:
    assert mail_at_once_schedule() == 0
    Notification.objects.filter(kind="region.rejected").update(read_at=timezone.now())
    assert mail_daily_schedule() == 1
    run_jobs()
    (message,) = mail.outbox
    assert "comments: 1" in message.body and "rejected" not in message.body
    assert mail_daily_schedule() == 0


def test_a_user_who_chose_never_gets_no_mail(rejected: Roi, annotator: User) -> None:
    preferences_set(user=annotator, mail="never")
    assert (mail_at_once_schedule(), mail_daily_schedule()) == (0, 0)


def test_without_a_mail_server_no_job_is_submitted(rejected: Roi, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    assert mail_daily_schedule() == 0


def test_old_notifications_are_not_mailed(rejected: Roi) -> None:
    Notification.objects.update(created_at=timezone.now() - RECENT - timedelta(hours=1))
    assert mail_daily_schedule() == 0


def test_no_mail_contains_a_case_the_person_can_no_longer_see(
    rejected: Roi, annotator: User
) -> None:
    assert mail_daily_schedule() == 1
    Membership.objects.filter(user=annotator).delete()
    run_jobs()
    assert mail.outbox == []


def test_a_failing_mail_server_loses_no_notification(
    rejected: Roi, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> int:
        raise OSError("connection refused")

    mail_daily_schedule()
    with monkeypatch.context() as patch:
        patch.setattr("django.core.mail.EmailMessage.send", refuse)
        run_jobs()
    assert not Notification.objects.exclude(mailed_at=None).exists()
    Job.objects.filter(kind=MAIL_KIND).update(
        state=JobState.FAILED, finished_at=timezone.now(), lease_token=None
    )
    assert mail_daily_schedule() == 0, "not at once again"
    Job.objects.filter(kind=MAIL_KIND).update(finished_at=timezone.now() - timedelta(hours=1))
    assert mail_daily_schedule() == 1
    run_jobs()
    assert len(mail.outbox) == 1

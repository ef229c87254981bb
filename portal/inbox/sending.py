"""Mail of unread notifications: at once, or as a daily digest.

A job for each lab sends one message to each person with unread notifications that were not mailed.
A message names no case and no image: a mailbox is no place for what may point to a patient.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import Q
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from portal.core.mail import mail_make, mail_works
from portal.inbox.models import (
    MailChoice,
    Notification,
    NotificationKind,
    NotificationQuerySet,
)
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_submit
from portal.labs.models import Lab, User

MAIL_KIND = "notifications_mail"
RECENT = timedelta(days=2)  # what is older was not sent while mail failed; the inbox has it
AFTER_FAILURE = timedelta(minutes=10)  # until the next job of a lab whose mail failed
WORDS = {
    NotificationKind.REJECTED: "rejected regions",
    NotificationKind.COMMENTED: "comments",
    NotificationKind.MENTIONED: "mentions of you",
    NotificationKind.ASSIGNED: "assignments",
    NotificationKind.MOSAIC_FINISHED: "finished mosaics",
    NotificationKind.MOSAIC_FAILED: "failed mosaics",
    NotificationKind.IMPORT_FINISHED: "finished imports",
    NotificationKind.IMPORT_FAILED: "failed imports",
    NotificationKind.QUARANTINED: "files in quarantine",
}


@dataclass(frozen=True, slots=True)
class Message:
    """Message to a person, and the notifications that it reports."""

    mail: EmailMessage
    notification_ids: tuple[uuid.UUID, ...]


def mail_at_once_schedule() -> int:
    """Submit a job for each lab with notifications to mail at once; returns how many."""
    return _schedule(MailChoice.AT_ONCE)


def mail_daily_schedule() -> int:
    """Submit a job for each lab with notifications of the daily digest; returns how many."""
    return _schedule(MailChoice.DAILY)


def _schedule(choice: MailChoice) -> int:
    if not mail_works():
        return 0
    failed_jobs = Job.objects.filter(
        kind=MAIL_KIND, state=JobState.FAILED, finished_at__gt=Now() - AFTER_FAILURE
    )
    unsent = _unsent_notifications(choice).order_by().values("lab_id")
    labs = Lab.objects.filter(pk__in=unsent).exclude(pk__in=failed_jobs.values("lab_id"))
    count = 0
    for lab in labs:
        args = {"lab_id": str(lab.pk), "choice": str(choice)}
        job_submit(kind=MAIL_KIND, args=args, lab=lab, user=None, target=lab, is_unique=True)
        count += 1
    return count


def _unsent_notifications(choice: MailChoice) -> NotificationQuerySet:
    """Recent, unread and unsent notifications of people with this choice; daily is the default."""
    chosen = Q(recipient__notification_preferences__mail=choice)
    if choice == MailChoice.DAILY:
        chosen |= Q(recipient__notification_preferences=None)
    recent = timezone.now() - RECENT
    return Notification.objects.filter(
        chosen, read_at=None, mailed_at=None, created_at__gt=recent, recipient__is_active=True
    )


def recipients_due(lab_id: uuid.UUID, choice: MailChoice) -> list[User]:
    """People of a lab with notifications to mail, by id."""
    unsent = _unsent_notifications(choice).filter(lab=lab_id).order_by()
    return list(User.objects.filter(pk__in=unsent.values("recipient_id")).order_by("pk"))


def message_to(user: User, lab_id: uuid.UUID, choice: MailChoice) -> Message | None:
    """Message to a person about a lab; None if they may not see any of the notifications."""
    unsent = _unsent_notifications(choice).visible_to(user).filter(lab=lab_id).order_by()
    rows = list(unsent.values_list("pk", "kind"))
    if not rows:
        return None
    counts = Counter(kind for _, kind in rows)
    context = {
        "total": len(rows),
        "lines": [(counts[kind], words) for kind, words in WORDS.items() if counts[kind]],
        "link": settings.TESSERA_URL + reverse("inbox:inbox"),
        "preferences": settings.TESSERA_URL + reverse("inbox:preferences"),
    }
    mail = mail_make("inbox/mail/notifications", to=user.email, context=context)
    return Message(mail, tuple(pk for pk, _ in rows))


def mailed(notification_ids: Sequence[uuid.UUID]) -> None:
    """Record that notifications were mailed."""
    now = timezone.now()
    Notification.objects.filter(pk__in=notification_ids).update(mailed_at=now, updated_at=now)

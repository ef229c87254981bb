"""Writes: notifications, their read state, and preferences."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from portal.annotations.models import ImportStage, ReviewState, Roi, RoiImport
from portal.annotations.services.staged import IMPORT_KIND as ROIS_IMPORT_KIND
from portal.archive.models import Upload
from portal.core.database.rows import rows_insert
from portal.core.errors import InvalidInputError
from portal.inbox.models import (
    MailChoice,
    Notification,
    NotificationKind,
    NotificationPreferences,
)
from portal.interop.rocrate.selectors.imports import IMPORT_KIND as CASE_IMPORT_KIND
from portal.jobs.models import Job, JobState
from portal.labs.models import Membership, Role, User
from portal.mosaics.models import Mosaic
from portal.mosaics.services.mosaics import JOB_KIND as MOSAIC_KIND
from portal.reader_studies.models import Assignment
from portal.review.models import RoiComment

KEPT = timedelta(days=180)  # of a notification, read or not
PRUNE_AT_ONCE = 5000  # rows in a transaction
MAX_ERROR = 300  # characters of a job's error: a sentence or two


@dataclass(frozen=True, slots=True)
class Notice:
    """Content of notifications, the same for all recipients.

    Attributes:
        actor_id: Person who acted, who is never notified; None for the portal.
        subject: Foreign keys of ``Notification``.
    """

    kind: NotificationKind
    lab_id: uuid.UUID
    actor_id: uuid.UUID | None = None
    subject: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)


def notify(notice: Notice, recipient_ids: Iterable[uuid.UUID | None]) -> None:
    """Write a notification for each recipient who is an active person of the lab.

    Call in the transaction of the change. One query, and one insert if there are recipients.
    """
    recipients = {pk for pk in recipient_ids if pk is not None and pk != notice.actor_id}
    if not recipients:
        return
    members = Membership.objects.filter(
        lab_id=notice.lab_id, user__in=recipients, user__is_active=True, user__is_service=False
    )
    rows = [
        Notification(
            lab_id=notice.lab_id,
            recipient_id=user_id,
            kind=notice.kind,
            actor_id=notice.actor_id,
            params=dict(notice.params),
            **notice.subject,
        )
        for user_id in members.order_by("user_id").values_list("user_id", flat=True)
    ]
    rows_insert(rows)


def notify_of_rejection(*, lab_id: uuid.UUID, payload: Mapping[str, Any]) -> None:
    """Notify the author of a rejected region. Handles ``roi.saved``."""
    if payload.get("reviewed_as") != ReviewState.REJECTED or payload["is_bulk"]:
        return
    author_id = Roi.all_objects.values_list("created_by_id", flat=True).get(pk=payload["roi_id"])
    notice = Notice(
        NotificationKind.REJECTED,
        lab_id,
        uuid.UUID(payload["user_id"]),
        {"roi_id": payload["roi_id"]},
        {"version": payload["version"]},
    )
    notify(notice, [author_id])


def notify_of_comment(*, lab_id: uuid.UUID, payload: Mapping[str, Any]) -> None:
    """Notify mentioned members, the author of the region, and earlier commenters.

    The reason of a rejection goes to the author's notification of it. Handles ``roi.commented``.
    """
    roi_id, actor_id = uuid.UUID(payload["roi_id"]), uuid.UUID(payload["user_id"])
    comment_id = uuid.UUID(payload["comment_id"])
    informed: set[uuid.UUID] = set()
    if payload["goes_with_verdict"]:
        rejections = Notification.objects.filter(
            roi=roi_id, kind=NotificationKind.REJECTED, params__version=payload["version"]
        )
        informed = set(rejections.values_list("recipient_id", flat=True))
        rejections.update(comment=comment_id)
    mentioned = {uuid.UUID(pk) for pk in payload["mentioned"]} - informed
    subject = {"roi_id": roi_id, "comment_id": comment_id}
    notify(Notice(NotificationKind.MENTIONED, lab_id, actor_id, subject), mentioned)
    thread = RoiComment.objects.filter(roi=roi_id).values_list("author_id", flat=True)
    author_id = Roi.all_objects.values_list("created_by_id", flat=True).get(pk=roi_id)
    recipient_ids = {author_id, *thread.order_by()} - informed - mentioned
    notify(Notice(NotificationKind.COMMENTED, lab_id, actor_id, subject), recipient_ids)


def notify_of_assignments(assignment_ids: Sequence[uuid.UUID]) -> None:
    """Notify each assignee, once for all images of a batch. Handles ``assignment.made``."""
    of_person: defaultdict[tuple[Any, ...], list[Assignment]] = defaultdict(list)
    for row in Assignment.all_objects.filter(pk__in=assignment_ids).order_by("pk"):
        of_person[row.lab_id, row.person_id, row.assigned_by_id].append(row)
    for (lab_id, person_id, actor_id), rows in of_person.items():
        subject = {"assignment_id": rows[0].pk} if len(rows) == 1 else {}
        params = {"count": len(rows)}
        notify(Notice(NotificationKind.ASSIGNED, lab_id, actor_id, subject, params), [person_id])


def notify_of_quarantine(*, lab_id: uuid.UUID, payload: Mapping[str, Any]) -> None:
    """Notify the managers of a lab of a file in quarantine. Handles ``quarantine.put``."""
    managers = Membership.objects.filter(lab=lab_id, role=Role.MANAGER)
    notice = Notice(
        NotificationKind.QUARANTINED, lab_id, subject={"upload_id": payload["upload_id"]}
    )
    notify(notice, managers.values_list("user_id", flat=True))


def quarantine_notifications_delete(*, upload_id: uuid.UUID) -> None:
    """Delete the notifications of a file that left quarantine; nobody has to decide any more."""
    Notification.objects.filter(upload=upload_id, kind=NotificationKind.QUARANTINED).delete()


def notify_of_job(*, lab_id: uuid.UUID, payload: Mapping[str, Any]) -> None:
    """Notify who started a mosaic or an import that has ended. Handles ``job.ended``.

    A cancelled job notifies nobody, and neither does the preview of an import.
    """
    state, kind = payload["state"], payload["kind"]
    kinds = _KINDS_OF_JOBS.get(kind)
    if kinds is None or state not in {JobState.SUCCEEDED, JobState.FAILED}:
        return
    subject = _subject_of_job(payload)
    if not subject:
        return
    is_done = state == JobState.SUCCEEDED
    error = "" if is_done else str(payload["error_message"])[:MAX_ERROR]
    notice = Notice(
        kinds[0] if is_done else kinds[1],
        lab_id,
        subject=subject,
        params={"error": error} if error else {},
    )
    starter = Job.objects.values_list("created_by_id", flat=True).filter(pk=payload["job_id"])
    notify(notice, starter)


_IMPORTS = (NotificationKind.IMPORT_FINISHED, NotificationKind.IMPORT_FAILED)
_KINDS_OF_JOBS: Mapping[str, tuple[NotificationKind, NotificationKind]] = {
    MOSAIC_KIND: (NotificationKind.MOSAIC_FINISHED, NotificationKind.MOSAIC_FAILED),
    ROIS_IMPORT_KIND: _IMPORTS,
    CASE_IMPORT_KIND: _IMPORTS,
}


def _subject_of_job(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Subject of a job's notification; empty if it is deleted or no notification is needed."""
    if payload["kind"] == ROIS_IMPORT_KIND:
        stages = (ImportStage.IMPORTING, ImportStage.IMPORTED)
        rows: QuerySet[Any] = RoiImport.objects.filter(job=payload["job_id"], stage__in=stages)
        name = "roi_import_id"
    elif payload["kind"] == MOSAIC_KIND:
        rows, name = Mosaic.objects.filter(pk=payload["target_id"]), "mosaic_id"
    else:
        rows, name = Upload.objects.filter(pk=payload["target_id"]), "upload_id"
    pk = rows.order_by().values_list("pk", flat=True).first()
    return {name: pk} if pk else {}


def notifications_read(notifications: QuerySet[Notification]) -> int:
    """Mark notifications as read; returns how many were unread."""
    now = timezone.now()
    ids = list(notifications.filter(read_at=None).order_by().values_list("pk", flat=True))
    count = 0
    for start in range(0, len(ids), PRUNE_AT_ONCE):
        rows = Notification.objects.filter(pk__in=ids[start : start + PRUNE_AT_ONCE], read_at=None)
        count += rows.update(read_at=now, updated_at=now)
    return count


def preferences_set(*, user: User, mail: str) -> NotificationPreferences:
    """Set when a person receives notifications by mail.

    Raises:
        InvalidInputError: unknown choice.
    """
    if mail not in MailChoice.values:
        raise InvalidInputError(f"mail: one of {', '.join(MailChoice.values)}.")
    row, _ = NotificationPreferences.objects.update_or_create(user=user, defaults={"mail": mail})
    return row


def notifications_prune() -> int:
    """Delete old notifications; returns how many."""
    old = Notification.objects.filter(created_at__lt=timezone.now() - KEPT).order_by()
    count = 0
    while ids := list(old.values_list("pk", flat=True)[:PRUNE_AT_ONCE]):
        count += Notification.objects.filter(pk__in=ids).delete()[0]
    return count

"""Notifications and the mail preferences of people."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.db.models import Exists, OuterRef, Q

from portal.annotations.models import Roi, RoiImport
from portal.archive.models import Canvas, Case, Upload, UploadState
from portal.core.models import BaseModel
from portal.labs.models import LabOwned, Membership, Role, User
from portal.labs.models.people import LabOwnedQuerySet
from portal.mosaics.models import Mosaic
from portal.reader_studies.models import Assignment
from portal.review.models import RoiComment


class NotificationKind(models.TextChoices):
    """Reasons for a notification."""

    REJECTED = "region.rejected", "Region rejected"
    COMMENTED = "region.commented", "Comment"
    MENTIONED = "region.mentioned", "Mention"
    ASSIGNED = "work.assigned", "Assignment"
    MOSAIC_FINISHED = "mosaic.finished", "Mosaic finished"
    MOSAIC_FAILED = "mosaic.failed", "Mosaic failed"
    IMPORT_FINISHED = "import.finished", "Import finished"
    IMPORT_FAILED = "import.failed", "Import failed"
    QUARANTINED = "file.quarantined", "File in quarantine"


class NotificationQuerySet(LabOwnedQuerySet["Notification"]):
    """Notifications; begin every query with ``visible_to``."""

    def owned_by(self, user: User | AnonymousUser) -> Self:
        """The person's own notifications of what they may still see."""
        if not isinstance(user, User):
            return self.none()
        return super().owned_by(user).filter(_subject_visible_to(user), recipient=user)

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Return the user's own notifications; nobody else may read them."""
        return self.owned_by(user)

    def unread(self) -> Self:
        """Notifications that were not marked as read."""
        return self.filter(read_at=None)


class Notification(LabOwned):
    """Something that happened to a person's work.

    A notification refers to at most one subject and is deleted with it. Its text is read from the
    subject when it is shown, except for ``params``.

    Attributes:
        actor: Person who caused it; None for the portal or an account that is gone.
        roi, mosaic, roi_import, upload, assignment: Subject. ``upload`` is a file in quarantine, or
            the crate of an imported case.
        comment: Reason of a rejection, or the comment on ``roi``.
        params: ``version`` of a rejected region, ``count`` of assigned images, ``error`` of a job.
        mailed_at: When it was sent by mail.
    """

    recipient = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notifications"
    )
    kind = models.CharField(max_length=20, choices=NotificationKind.choices)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    roi = models.ForeignKey(Roi, null=True, on_delete=models.CASCADE, related_name="+")
    comment = models.ForeignKey(RoiComment, null=True, on_delete=models.CASCADE, related_name="+")
    mosaic = models.ForeignKey(Mosaic, null=True, on_delete=models.CASCADE, related_name="+")
    roi_import = models.ForeignKey(RoiImport, null=True, on_delete=models.CASCADE, related_name="+")
    upload = models.ForeignKey(Upload, null=True, on_delete=models.CASCADE, related_name="+")
    assignment = models.ForeignKey(
        Assignment, null=True, on_delete=models.CASCADE, related_name="+"
    )
    params = models.JSONField(default=dict, help_text="version, count, error")
    read_at = models.DateTimeField(null=True, blank=True)
    mailed_at = models.DateTimeField(null=True, blank=True)

    objects = NotificationQuerySet.as_manager()  # type: ignore[misc,assignment]
    all_objects = NotificationQuerySet.as_manager()  # type: ignore[misc]

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (
            models.Index(fields=["recipient", "-created_at"], name="notification_inbox"),
            models.Index(
                fields=["recipient"],
                condition=models.Q(read_at=None),
                name="notification_unread",
            ),
            models.Index(
                fields=["created_at"],
                condition=models.Q(read_at=None, mailed_at=None),
                name="notification_to_mail",
            ),
        )

    def __str__(self) -> str:
        return f"{self.get_kind_display()} for {self.recipient}"


class MailChoice(models.TextChoices):
    """Times at which a person receives notifications by mail."""

    AT_ONCE = "at-once", "At once"
    DAILY = "daily", "Once a day"
    NEVER = "never", "Never"


class NotificationPreferences(BaseModel):
    """Mail preferences of a person; without a row, the defaults apply."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="notification_preferences",
    )
    mail = models.CharField(max_length=7, choices=MailChoice.choices, default=MailChoice.DAILY)

    class Meta:
        verbose_name_plural = "notification preferences"


def _subject_visible_to(user: User) -> Q:
    """Condition on a notification: the user may see its subject, and it is not in the trash.

    Correlated subqueries by primary key, so that the unread count reads a few rows.
    """
    rois = Roi.objects.owned_by(user).live().filter(pk=OuterRef("roi_id"))
    mosaics = Mosaic.objects.owned_by(user).filter(pk=OuterRef("mosaic_id"))
    imported = Canvas.objects.owned_by(user).filter(pk=OuterRef("roi_import__canvas_id"))
    assignments = Assignment.objects.owned_by(user).filter(
        pk=OuterRef("assignment_id"), person=user
    )
    managed = Membership.objects.of(user).filter(lab=OuterRef("lab_id"), role=Role.MANAGER)
    cases = Case.objects.owned_by(user).filter(pk=OuterRef("upload__case_id"))
    is_held = Q(upload__state=UploadState.QUARANTINED) & Q(Exists(cases))
    is_of_crate = ~Q(kind=NotificationKind.QUARANTINED) & (Q(upload__case=None) | Q(Exists(cases)))
    uploads = Q(Exists(managed)) & (is_held | is_of_crate)
    return (
        (Q(roi=None) | Q(Exists(rois)))
        & (Q(mosaic=None) | Q(Exists(mosaics)))
        & (Q(roi_import=None) | Q(Exists(imported)))
        & (Q(assignment=None) | Q(Exists(assignments)))
        & (Q(upload=None) | uploads)
    )

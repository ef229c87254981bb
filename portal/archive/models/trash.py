"""The trash: deleted objects, and rows that can be in it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from portal.archive.models.shares import cases_shared_with
from portal.core.database.names import NameField
from portal.labs.models import LabOwned, User

PRESENT = models.Q(trash_entry=None)
"""Rows that are not in the trash: only they have to be unique."""


class TrashKind(models.TextChoices):
    """Kinds of objects that can be put into the trash."""

    CASE = "case", "Case"
    SLIDE = "slide", "Slide"
    VIDEO = "video", "Video"
    MOSAIC = "mosaic", "Mosaic"


class TrashEntry(LabOwned):
    """A deletion: person, time (``created_at``) and object.

    Every row that was deleted with the object points to its entry, so that restoring brings back
    exactly these rows.
    """

    kind = models.CharField(max_length=8, choices=TrashKind.choices)
    target_id = models.UUIDField(unique=True)
    name = NameField(max_length=200)
    case_id = models.UUIDField(
        db_index=True, help_text="The case of the target, or the target itself"
    )
    holds = models.JSONField(default=dict, help_text="What was deleted with it: names to numbers")
    deleted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ("-created_at", "id")
        verbose_name_plural = "trash entries"

    def __str__(self) -> str:
        return self.name


class Trashable(LabOwned):
    """A row that can be in the trash. ``objects`` leaves out the trash, ``all_objects`` has all."""

    trash_entry = models.ForeignKey(
        TrashEntry,
        null=True,
        blank=True,
        editable=False,
        on_delete=models.RESTRICT,
        related_name="+",
    )

    class Meta:
        abstract = True

    @classmethod
    def without_trashed(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Rows that are not in the trash."""
        return rows.filter(trash_entry=None)

    @classmethod
    def shared_with(cls, user: User) -> models.Q | None:
        """Rows of a case that another lab shares."""
        return models.Q(case_id__in=cases_shared_with(user))

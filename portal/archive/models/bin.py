"""The bin: what was deleted, and rows that can be in it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from portal.archive.models.shares import cases_shared_with
from portal.core.database.names import NameField
from portal.labs.models import LabOwned, User

PRESENT = models.Q(bin_entry=None)
"""Rows that are not in the bin: only they have to be unique."""


class BinKind(models.TextChoices):
    """What can be put into the bin by itself."""

    CASE = "case", "Case"
    SLIDE = "slide", "Slide"
    VIDEO = "video", "Video"
    MOSAIC = "mosaic", "Mosaic"


class BinEntry(LabOwned):
    """One act of deletion: who, when (``created_at``), of what, and what it took along.

    Every row that went with it points here, so that restoring brings back exactly those: what an
    earlier act put into the bin stays there.
    """

    kind = models.CharField(max_length=8, choices=BinKind.choices)
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
        verbose_name_plural = "bin entries"

    def __str__(self) -> str:
        return self.name


class Binnable(LabOwned):
    """A row that can be in the bin. ``objects`` has those that are not, ``everything`` has all."""

    bin_entry = models.ForeignKey(
        BinEntry, null=True, blank=True, editable=False, on_delete=models.RESTRICT, related_name="+"
    )

    class Meta:
        abstract = True

    @classmethod
    def shown(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Those that are not in the bin."""
        return rows.filter(bin_entry=None)

    @classmethod
    def shared_with(cls, user: User) -> models.Q | None:
        """What belongs to a case that another lab shares."""
        return models.Q(case_id__in=cases_shared_with(user))

"""Answers of searches, frozen."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from portal.annotations.models import Roi
from portal.archive.models import Canvas, canvases_in_bin
from portal.core.database.names import NameField
from portal.labs.models import LabOwned
from portal.retrieval.models.searches import Query


class Report(LabOwned):
    """An answer as it was: what was asked, how, and what was found. It is never changed.

    What belongs to a patient goes with the patient: the whole report with the image that was
    searched with, and each of its regions (``ReportRegion``) with its own image.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    made_by = models.CharField(max_length=254, help_text="Name of the person at that time")
    name = NameField(max_length=300, help_text="Name of what was searched with")
    roi = models.ForeignKey(Roi, null=True, on_delete=models.SET_NULL, related_name="+")
    query = models.ForeignKey(Query, null=True, on_delete=models.SET_NULL, related_name="+")
    canvas = models.ForeignKey(
        Canvas, null=True, on_delete=models.CASCADE, related_name="+", help_text="Searched with"
    )
    content = models.JSONField(help_text="See selectors.reports.Frozen")
    picture = models.BinaryField(null=True, help_text="JPEG of what was searched with")

    class Meta:
        ordering = ("-created_at", "id")

    def __str__(self) -> str:
        return self.name

    @classmethod
    def shown(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Those whose image is not in the bin."""
        return rows.exclude(canvas__in=canvases_in_bin())


class RegionRole(models.TextChoices):
    """What a region is to a report."""

    HIT = "hit", "Found"
    LIKED = "liked", "Marked as alike"
    UNLIKED = "unliked", "Marked as not alike"


class ReportRegion(LabOwned):
    """A region of a report, with all that the report says of it: it goes with its own image."""

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="regions")
    role = models.CharField(max_length=8, choices=RegionRole.choices, default=RegionRole.HIT)
    rank = models.PositiveIntegerField()
    roi = models.ForeignKey(Roi, null=True, on_delete=models.SET_NULL, related_name="+")
    canvas = models.ForeignKey(Canvas, on_delete=models.CASCADE, related_name="+")
    content = models.JSONField(help_text="See selectors.reports.FrozenRegion")
    picture = models.BinaryField(null=True, help_text="JPEG; empty if it could not be read")

    class Meta:
        ordering = ("rank", "id")
        constraints = (
            models.UniqueConstraint(
                fields=["report", "role", "rank"], name="report_region_rank_unique"
            ),
        )

    @classmethod
    def shown(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Those whose image is not in the bin."""
        return rows.exclude(canvas__in=canvases_in_bin())

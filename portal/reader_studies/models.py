"""Assignments of images, individually or as a blinded study of several readers."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from portal.annotations.models import Label, Roi, RoiRevision
from portal.archive.models import Canvas
from portal.archive.models.records import canvases_in_trash
from portal.core.database.names import NameField
from portal.labs.models import LabOwned

NOTE_MAX = 500  # characters
DEFAULT_MIN_IOU = 0.5  # the usual threshold for a match


class BlindUntil(models.TextChoices):
    """Time at which readers may see each other's regions."""

    IMAGE = "image", "All readers of an image have handed it in"
    STUDY = "study", "All readers have handed in everything"
    NEVER_BLIND = "open", "From the start: the readers are not blinded"


class Study(LabOwned):
    """Images that several readers read independently, to be compared.

    ``labels`` are the compared ones; none: all labels of the lab. Outlines that overlap less than
    ``min_iou`` do not match. While a study is blind, the blinding of each reading is
    ``Assignment.is_blind``.
    """

    name = NameField(max_length=120)
    note = models.CharField(max_length=NOTE_MAX, blank=True)
    labels: models.ManyToManyField[Label, Any] = models.ManyToManyField(Label, related_name="+")
    min_iou = models.FloatField(default=DEFAULT_MIN_IOU)
    blind_until = models.CharField(
        max_length=8, choices=BlindUntil.choices, default=BlindUntil.IMAGE
    )
    unblinded_at = models.DateTimeField(null=True, blank=True)
    unblinded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ("-created_at", "id")
        verbose_name_plural = "studies"
        constraints = (models.UniqueConstraint(fields=["lab", "name"], name="study_name_unique"),)

    def __str__(self) -> str:
        return self.name


class Assignment(LabOwned):
    """An image assigned to a person; in a study: a reading of the image.

    Attributes:
        is_blind: Until it is lifted, regions drawn on the image since the assignment are visible
            only to the reader, who in turn sees only their own regions there.
        submitted_at: Time of submission; the regions of a reading are recorded at that time
            (``SubmittedRegion``).
    """

    edited = (
        "due_on",
        "note",
    )

    study = models.ForeignKey(
        Study, null=True, blank=True, on_delete=models.CASCADE, related_name="readings"
    )
    canvas = models.ForeignKey(Canvas, on_delete=models.CASCADE, related_name="+")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    due_on = models.DateField(null=True, blank=True)
    note = models.CharField(max_length=NOTE_MAX, blank=True)
    is_blind = models.BooleanField(default=False)
    submitted_at = models.DateTimeField(null=True, blank=True)
    assigned_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ("created_at", "id")
        constraints = (
            models.UniqueConstraint(fields=["study", "canvas", "person"], name="reading_once"),
            models.UniqueConstraint(
                fields=["canvas", "person"],
                condition=models.Q(study=None, submitted_at=None),
                name="assignment_open_once",
            ),
        )
        indexes = (
            models.Index(fields=["person", "submitted_at"], name="assignment_of_person"),
            models.Index(
                fields=["canvas", "person"],
                condition=models.Q(is_blind=True),
                name="assignment_blind",
            ),
        )

    def __str__(self) -> str:
        return f"{self.canvas} for {self.person}"

    @classmethod
    def without_trashed(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Rows whose canvas is not in the trash."""
        return rows.exclude(canvas__in=canvases_in_trash())


class SubmittedRegion(models.Model):
    """A region of a reading as submitted: later changes of the region change no result."""

    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="regions")
    revision = models.ForeignKey(RoiRevision, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["assignment", "revision"], name="submitted_region_once"
            ),
        )


class Choice(models.TextChoices):
    """Decision on a finding."""

    READER = "reader", "A reader's region"
    MERGED = "merged", "The area that at least half of the readers drew"
    DRAWN = "drawn", "Newly drawn"
    NOTHING = "nothing", "Nothing there"


class Decision(LabOwned):
    """An adjudicator's decision on a finding; ``roi`` is the consensus region, None without one.

    ``finding`` is derived from the regions of the finding (``agreement.findings``).
    """

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="decisions")
    canvas = models.ForeignKey(Canvas, on_delete=models.CASCADE, related_name="+")
    finding = models.UUIDField()
    choice = models.CharField(max_length=8, choices=Choice.choices)
    roi = models.ForeignKey(Roi, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        constraints = (models.UniqueConstraint(fields=["study", "finding"], name="decision_once"),)

    @classmethod
    def without_trashed(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Rows whose canvas is not in the trash."""
        return rows.exclude(canvas__in=canvases_in_trash())

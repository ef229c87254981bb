"""Work that is assigned: images to people, alone or as a study that several read blindly."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from portal.annotations.models import Label, Roi, RoiRevision
from portal.archive.models import Canvas, canvases_in_bin
from portal.core.database.names import NameField
from portal.labs.models import LabOwned

NOTE_MAX = 500  # characters: an instruction, not a protocol
IOU_LEAST = 0.5  # the usual overlap from which two outlines are taken for the same thing


class BlindUntil(models.TextChoices):
    """When readers may see each other's regions."""

    IMAGE = "image", "All readers of an image have handed it in"
    STUDY = "study", "All readers have handed in everything"
    NEVER_BLIND = "open", "From the start: the readers are not blinded"


class Study(LabOwned):
    """Images that several people read independently, to be compared.

    ``labels`` are those that are compared; none: all of the lab's. ``iou_least``: outlines that
    overlap less are not the same thing. While a study is blind, the blinding of each reading is
    ``Assignment.is_blind``.
    """

    name = NameField(max_length=120)
    note = models.CharField(max_length=NOTE_MAX, blank=True)
    labels: models.ManyToManyField[Label, Any] = models.ManyToManyField(Label, related_name="+")
    iou_least = models.FloatField(default=IOU_LEAST)
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
    """An image that a person is to work on; of a study: a reading of it.

    Attributes:
        is_blind: until it is lifted, nobody but the reader sees what they drew on the image since
            they were asked, and the reader sees there nobody's regions but their own.
        submitted_at: when the person said that it is done; a reading keeps its regions as they
            were then (``SubmittedRegion``).
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
    def shown(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Those whose canvas is not in the bin."""
        return rows.exclude(canvas__in=canvases_in_bin())


class SubmittedRegion(models.Model):
    """A region of a reading as it was handed in: later changes of it change no result."""

    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="regions")
    revision = models.ForeignKey(RoiRevision, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["assignment", "revision"], name="submitted_region_once"
            ),
        )


class Choice(models.TextChoices):
    """What was decided about a finding."""

    READER = "reader", "A reader's region"
    MERGED = "merged", "The area that at least half of the readers drew"
    DRAWN = "drawn", "Newly drawn"
    NOTHING = "nothing", "Nothing there"


class Decision(LabOwned):
    """What an adjudicator made of one finding; ``roi`` is the consensus, none for nothing.

    ``finding`` follows from the regions of the finding (``agreement.findings``).
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
    def shown(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Those whose canvas is not in the bin."""
        return rows.exclude(canvas__in=canvases_in_bin())

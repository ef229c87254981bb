"""Queries, judgements of hits, explanations of matches, and reports."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from portal.annotations.models import Roi
from portal.archive.models import Canvas, Modality
from portal.archive.models.records import canvases_in_trash
from portal.core.database.names import NameField
from portal.embeddings.models import Embedding, Encoder
from portal.jobs.models import Job
from portal.labs.models import LabOwned


class Verdict(models.TextChoices):
    """A person's judgement of two regions."""

    ALIKE = "alike", "Alike"
    UNLIKE = "unlike", "Not alike"


class Judgement(LabOwned):
    """A person's judgement of whether a region is like the one searched with.

    Their next search with the region uses it, and encoders are evaluated against it.
    """

    roi = models.ForeignKey(Roi, on_delete=models.CASCADE, related_name="judgements")
    other = models.ForeignKey(Roi, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    verdict = models.CharField(max_length=8, choices=Verdict.choices)

    class Meta:
        ordering = ("created_at", "id")
        constraints = (
            models.UniqueConstraint(fields=["roi", "other", "user"], name="judgement_unique"),
        )


class QuerySource(models.TextChoices):
    AREA = "area", "Area"
    FRAME = "frame", "Video frame"
    PICTURE = "picture", "Picture"
    TISSUE = "tissue", "Tissue of a whole slide"
    ROIS = "rois", "Regions of a whole slide"
    EXAMPLES = "examples", "Examples"


EMBEDDED_SOURCES = (
    QuerySource.AREA,
    QuerySource.FRAME,
    QuerySource.PICTURE,
    QuerySource.TISSUE,
)
"""Sources whose pixels a job embeds; the others use vectors of ROIs."""


class Query(LabOwned):
    """A query other than an ROI, stored for some days so that it has a URL.

    Its outline is not an annotation. An uploaded picture is stored only here: first as uploaded
    and, after a job has decoded it in a sandboxed child process, as a JPEG.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    source = models.CharField(max_length=10, choices=QuerySource.choices)
    kind = models.CharField(max_length=20, choices=Modality.choices)
    canvas = models.ForeignKey(Canvas, null=True, on_delete=models.CASCADE, related_name="+")
    geometry = models.JSONField(null=True, help_text="For an area, in level-0 pixels")
    frame_pts = models.BigIntegerField(null=True)
    mpp = models.FloatField(null=True, help_text="For a picture, as it was entered")
    scale = models.FloatField(
        default=1.0, help_text="Searches for the same structures this many times as large"
    )
    upload = models.BinaryField(null=True, help_text="The uploaded picture, until it is decoded")
    picture = models.BinaryField(null=True, help_text="JPEG of a picture, once it is decoded")
    picture_mpp = models.FloatField(null=True, help_text="Of the JPEG, which may be reduced")
    width_px = models.PositiveIntegerField(default=0, help_text="Of the JPEG")
    height_px = models.PositiveIntegerField(default=0, help_text="Of the JPEG")
    liked = models.JSONField(default=list, help_text="ids of ROIs that hits should be like")
    unliked = models.JSONField(default=list, help_text="ids of ROIs that hits should not be like")
    encoder = models.ForeignKey(Encoder, null=True, on_delete=models.CASCADE, related_name="+")
    vector = models.BinaryField(null=True, help_text="float32, little-endian, encoder.dim values")

    class Meta:
        ordering = ("-created_at", "id")
        verbose_name_plural = "queries"

    def __str__(self) -> str:
        name = QuerySource(self.source).label
        return f"{name} on {self.canvas.name}" if self.canvas else name

    @property
    def is_ready(self) -> bool:
        """Return whether it has the vector that its source needs."""
        return self.source not in EMBEDDED_SOURCES or self.vector is not None

    @property
    def has_picture(self) -> bool:
        """False for examples, and for a picture that is not decoded yet."""
        return self.canvas_id is not None or self.width_px > 0

    @classmethod
    def without_trashed(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Rows whose canvas is not in the trash."""
        return rows.exclude(canvas__in=canvases_in_trash())


class Explanation(LabOwned):
    """Matching patches or key points of a hit and the query that found it.

    Its two vectors never change, so it is computed once; deleted after some days.
    """

    embedding = models.ForeignKey(
        Embedding, null=True, on_delete=models.CASCADE, related_name="+", help_text="Searched with"
    )
    query = models.ForeignKey(
        Query, null=True, on_delete=models.CASCADE, related_name="+", help_text="Searched with"
    )
    hit = models.ForeignKey(Embedding, on_delete=models.CASCADE, related_name="+")
    job = models.ForeignKey(Job, null=True, on_delete=models.SET_NULL, related_name="+")
    result = models.JSONField(
        null=True, help_text="As MatchExplanation; null until it is worked out"
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["embedding", "hit"],
                condition=models.Q(embedding__isnull=False),
                name="explanation_of_roi_unique",
            ),
            models.UniqueConstraint(
                fields=["query", "hit"],
                condition=models.Q(query__isnull=False),
                name="explanation_of_query_unique",
            ),
        )


class Report(LabOwned):
    """Stored search: query, options and results; never changed.

    Data of a patient is deleted with the patient: the whole report with the image of the query, and
    each region (``ReportRegion``) with its own image.
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
    content = models.JSONField(help_text="See selectors.reports.ReportContent")
    picture = models.BinaryField(null=True, help_text="JPEG of what was searched with")

    class Meta:
        ordering = ("-created_at", "id")

    def __str__(self) -> str:
        return self.name

    @classmethod
    def without_trashed(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Rows whose image is not in the trash."""
        return rows.exclude(canvas__in=canvases_in_trash())


MAX_INTERPRETATION = 10_000  # characters: two pages of the printed report


class ReportInterpretation(LabOwned):
    """A person's interpretation of a report; each change adds a version, and the last one counts.

    An empty text takes the interpretation back. Deleted with the report.
    """

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="interpretations")
    version = models.PositiveIntegerField(help_text="From 1 on")
    text = models.TextField(blank=True)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    written_by = models.CharField(max_length=254, help_text="Name of the author at that time")

    class Meta:
        ordering = ("version",)
        constraints = (
            models.UniqueConstraint(
                fields=["report", "version"], name="report_interpretation_version_unique"
            ),
        )

    @classmethod
    def without_trashed(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Rows whose image is not in the trash."""
        return rows.exclude(report__canvas__in=canvases_in_trash())


class RegionRole(models.TextChoices):
    """Role of a region in a report."""

    HIT = "hit", "Found"
    LIKED = "liked", "Marked as alike"
    UNLIKED = "unliked", "Marked as not alike"


class ReportRegion(LabOwned):
    """A region of a report and its stored content; deleted with its image."""

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="regions")
    role = models.CharField(max_length=8, choices=RegionRole.choices, default=RegionRole.HIT)
    rank = models.PositiveIntegerField()
    roi = models.ForeignKey(Roi, null=True, on_delete=models.SET_NULL, related_name="+")
    canvas = models.ForeignKey(Canvas, on_delete=models.CASCADE, related_name="+")
    content = models.JSONField(help_text="See selectors.reports.ReportRegionContent")
    picture = models.BinaryField(null=True, help_text="JPEG; empty if it could not be read")

    class Meta:
        ordering = ("rank", "id")
        constraints = (
            models.UniqueConstraint(
                fields=["report", "role", "rank"], name="report_region_rank_unique"
            ),
        )

    @classmethod
    def without_trashed(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Rows whose image is not in the trash."""
        return rows.exclude(canvas__in=canvases_in_trash())

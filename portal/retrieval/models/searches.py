"""What is searched with, what people say of the results, and why a result was found."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from portal.annotations.models import Roi
from portal.archive.models import Canvas, canvases_in_bin
from portal.jobs.models import Job
from portal.labs.models import LabOwned
from portal.retrieval.models.vectors import Embedding, Encoder, EncoderKind


class Verdict(models.TextChoices):
    """What a person says of two regions."""

    ALIKE = "alike", "Alike"
    UNLIKE = "unlike", "Not alike"


class Judgement(LabOwned):
    """One person's word on whether another region is like the one they searched with.

    Their next search with the region goes by it, and encoders are measured against it.
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
    """What a query is made of."""

    AREA = "area", "Area"
    FRAME = "frame", "Video frame"
    PICTURE = "picture", "Picture"
    TISSUE = "tissue", "Tissue of a whole slide"
    ROIS = "rois", "ROIs of a whole slide"
    EXAMPLES = "examples", "Examples"


EMBEDDED_SOURCES = (
    QuerySource.AREA,
    QuerySource.FRAME,
    QuerySource.PICTURE,
    QuerySource.TISSUE,
)
"""Queries whose pixels a job turns into a vector; the others go by vectors that ROIs have."""


class Query(LabOwned):
    """What is searched with other than an ROI. It is kept for some days, so that it has an address.

    The outline is nobody's annotation; an uploaded picture is held here and nowhere else, as it
    came until the job has decoded it in a confined child, then as a JPEG.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    source = models.CharField(max_length=10, choices=QuerySource.choices)
    kind = models.CharField(max_length=20, choices=EncoderKind.choices)
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
        """It has the vector that its source needs."""
        return self.source not in EMBEDDED_SOURCES or self.vector is not None

    @property
    def has_picture(self) -> bool:
        """False for examples, and for a picture that is not decoded yet."""
        return self.canvas_id is not None or self.width_px > 0

    @classmethod
    def shown(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Those whose canvas is not in the bin."""
        return rows.exclude(canvas__in=canvases_in_bin())


class Explanation(LabOwned):
    """Why a region was found: which patches of it and of what was searched with match.

    Its two vectors never change, so it is worked out once; it is dropped after some days.
    """

    embedding = models.ForeignKey(
        Embedding, null=True, on_delete=models.CASCADE, related_name="+", help_text="Searched with"
    )
    query = models.ForeignKey(
        Query, null=True, on_delete=models.CASCADE, related_name="+", help_text="Searched with"
    )
    hit = models.ForeignKey(Embedding, on_delete=models.CASCADE, related_name="+")
    job = models.ForeignKey(Job, null=True, on_delete=models.SET_NULL, related_name="+")
    result = models.JSONField(null=True, help_text="As MatchFound; null until it is worked out")

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

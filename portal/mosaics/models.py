"""Mosaics of videos, and what became of every frame."""

from __future__ import annotations

from django.db import models

from portal.archive.models import Case, CaseItem, Video
from portal.core.models import BaseModel


class Mosaic(CaseItem):
    """A mosaic stitched from a video's frames; ``config`` is what it was built with."""

    case = models.ForeignKey(Case, on_delete=models.CASCADE, related_name="mosaics")
    video = models.ForeignKey(Video, on_delete=models.CASCADE, related_name="mosaics")
    config = models.JSONField(default=dict)
    config_hash = models.CharField(max_length=64, blank=True)
    frame_count = models.PositiveIntegerField(default=0)
    registered_count = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(default=0)

    class Meta:
        ordering = ("created_at", "id")


class FrameStatus(models.TextChoices):
    """What became of a frame."""

    REGISTERED = "registered", "Registered"
    SKIPPED = "skipped", "Skipped"
    FAILED = "failed", "Failed"


class MosaicFrame(BaseModel):
    """One frame: index and PTS, its transform to the mosaic, its status and the reason."""

    mosaic = models.ForeignKey(Mosaic, on_delete=models.CASCADE, related_name="frames")
    index = models.PositiveIntegerField()
    pts = models.BigIntegerField()
    H_mosaic_from_frame = models.JSONField(null=True, help_text="3 x 3, row major")
    status = models.CharField(max_length=12, choices=FrameStatus.choices)
    reason = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ("index",)
        constraints = (
            models.UniqueConstraint(fields=["mosaic", "index"], name="mosaic_frame_unique"),
        )

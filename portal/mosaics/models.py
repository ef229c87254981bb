"""Mosaics of videos, and what became of every frame."""

from __future__ import annotations

from django.db import models

from portal.archive.models import Case, CaseItem, Video
from portal.core.models import BaseModel


class Mosaic(CaseItem):
    """A mosaic stitched from a video's frames.

    ``config`` holds the choices that differ from the defaults; a video has one mosaic of each.
    ``motion_model`` and ``anchor_index`` (the frame the others were brought to) come from the
    build.
    """

    case = models.ForeignKey(Case, on_delete=models.CASCADE, related_name="mosaics")
    video = models.ForeignKey(Video, on_delete=models.CASCADE, related_name="mosaics")
    config = models.JSONField(default=dict)
    config_hash = models.CharField(max_length=64, blank=True)
    frame_count = models.PositiveIntegerField(default=0)
    registered_count = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(default=0)
    motion_model = models.CharField(max_length=20, blank=True)
    anchor_index = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering = ("created_at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=["video", "config_hash"], name="mosaic_video_config_unique"
            ),
        )


class FrameStatus(models.TextChoices):
    """What became of a frame."""

    REGISTERED = "registered", "Registered"
    SKIPPED = "skipped", "Skipped"
    FAILED = "failed", "Failed"


class MosaicFrame(BaseModel):
    """One frame: index and PTS, its transform to the mosaic, its status and the reason.

    ``links`` counts the pairs that hold it, ``error_px`` is their median residual in frame pixels.
    """

    mosaic = models.ForeignKey(Mosaic, on_delete=models.CASCADE, related_name="frames")
    index = models.PositiveIntegerField()
    pts = models.BigIntegerField()
    H_mosaic_from_frame = models.JSONField(null=True, help_text="3 x 3, row major")
    status = models.CharField(max_length=12, choices=FrameStatus.choices)
    reason = models.CharField(max_length=200, blank=True)
    links = models.PositiveIntegerField(default=0)
    error_px = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ("index",)
        constraints = (
            models.UniqueConstraint(fields=["mosaic", "index"], name="mosaic_frame_unique"),
        )

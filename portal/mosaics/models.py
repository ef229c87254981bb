"""Mosaics of videos, and what became of every frame."""

from __future__ import annotations

from typing import Any, TypedDict

from django.conf import settings
from django.db import models

from portal.annotations.models import Roi
from portal.archive.models import Canvas, Case, CaseItem, ItemState, Video
from portal.archive.models.records import canvases_in_trash
from portal.archive.models.trash import PRESENT
from portal.core.models import BaseModel
from portal.labs.models import LabOwned


class Mosaic(CaseItem):
    """A mosaic stitched from a video's frames.

    ``config`` holds the choices that differ from the defaults (the span in seconds among them); a
    video has one mosaic of each. ``motion_model`` and ``anchor_index`` (the frame the others were
    brought to) come from the build, and so do ``engine`` (what made it, with its configuration's
    hash), ``quality`` (figures of how well it fits), ``gaps`` (runs of frames in no mosaic, named
    by seconds) and ``view_outline`` (the scope's view in frame pixels; empty: the whole frame).
    ``canvas`` is that of its first component.
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
    engine = models.JSONField(default=dict)
    quality = models.JSONField(default=dict)
    gaps = models.JSONField(default=list)
    view_outline = models.JSONField(default=list)

    class Meta:
        ordering = ("created_at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=["video", "config_hash"],
                condition=PRESENT,
                name="mosaic_video_config_unique",
            ),
        )


class MosaicComponent(BaseModel):
    """A connected component of a mosaic: a plane of its own, with its layers.

    Where nothing seen joins two runs of frames there are several; component 0 has the most frames.
    ``spans`` are its runs of frames in seconds; ``layers`` name the pictures of coverage, count,
    uncertainty and time in the mosaic's folder, with the range of each.
    """

    mosaic = models.ForeignKey(Mosaic, on_delete=models.CASCADE, related_name="components")
    index = models.PositiveIntegerField()
    canvas = models.OneToOneField(Canvas, on_delete=models.CASCADE, related_name="mosaic_component")
    anchor_index = models.PositiveIntegerField(null=True, blank=True)
    registered_count = models.PositiveIntegerField(default=0)
    spans = models.JSONField(default=list)
    layers = models.JSONField(default=list)
    quality = models.JSONField(default=dict)

    class Meta:
        ordering = ("index",)
        constraints = (
            models.UniqueConstraint(fields=["mosaic", "index"], name="mosaic_component_unique"),
        )


class FrameStatus(models.TextChoices):
    """Result of the registration of a frame."""

    REGISTERED = "registered", "Registered"
    SKIPPED = "skipped", "Skipped"
    FAILED = "failed", "Failed"


class MosaicFrame(BaseModel):
    """A frame: index and PTS, its transform to the mosaic, its status and the reason.

    ``links`` counts the pairs that hold it, ``error_px`` is their median residual in frame pixels.
    ``sharpness`` compares frames of one video, ``uncertainty_px`` is one standard deviation of its
    position, from ``covariance``. ``component`` is the index of the one its transform leads to;
    ``left`` to ``bottom`` bound it there, so that the frames at a point are found without reading
    all of them.
    """

    mosaic = models.ForeignKey(Mosaic, on_delete=models.CASCADE, related_name="frames")
    index = models.PositiveIntegerField()
    pts = models.BigIntegerField()
    H_mosaic_from_frame = models.JSONField(null=True, help_text="3 x 3, row major")
    mesh = models.JSONField(null=True, help_text="9 x 9 displacements (x, y), frame px")
    status = models.CharField(max_length=12, choices=FrameStatus.choices)
    reason = models.CharField(max_length=200, blank=True)
    reason_code = models.CharField(max_length=30, blank=True)
    is_key = models.BooleanField(default=True)
    links = models.PositiveIntegerField(default=0)
    error_px = models.FloatField(null=True, blank=True)
    sharpness = models.FloatField(null=True, blank=True)
    uncertainty_px = models.FloatField(null=True, blank=True)
    covariance = models.JSONField(null=True, blank=True)
    component = models.PositiveIntegerField(null=True, blank=True)
    left = models.FloatField(null=True, blank=True)
    top = models.FloatField(null=True, blank=True)
    right = models.FloatField(null=True, blank=True)
    bottom = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ("index",)
        constraints = (
            models.UniqueConstraint(fields=["mosaic", "index"], name="mosaic_frame_unique"),
        )


class FollowupHit(TypedDict):
    """A row of ``Followup.result``; index, PTS and time are None on a mosaic."""

    rank: int
    index: int | None
    pts: int | None
    time_s: float | None
    inliers: int
    matches: int
    outline: list[list[float]]
    picture: str


class Followup(LabOwned):
    """A place of one examination looked for in another of the same patient.

    The place is an ROI as it stood (``roi_version``), the target a video or a mosaic. ``result``
    holds the ranked frames with their matches once the state is *ready*; an empty list says that
    the place was not found.
    """

    roi = models.ForeignKey(Roi, on_delete=models.CASCADE, related_name="followups")
    roi_version = models.PositiveIntegerField()
    target = models.ForeignKey(Canvas, on_delete=models.CASCADE, related_name="followups")
    state = models.CharField(
        max_length=10, choices=ItemState.choices, default=ItemState.PREPARING, db_index=True
    )
    error_code = models.CharField(max_length=60, blank=True)
    error_message = models.TextField(blank=True)
    result = models.JSONField(default=list)
    searched_count = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(default=0)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ("-created_at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=["roi", "roi_version", "target"], name="followup_unique"
            ),
        )

    @classmethod
    def without_trashed(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Follow-ups whose ROI and target are not on a canvas in the trash."""
        places = Roi.all_objects.filter(canvas__in=canvases_in_trash()).order_by().values("pk")
        return rows.exclude(target__in=canvases_in_trash()).exclude(roi__in=places)

"""Canvases and frames as programs (and the viewer) see them."""

from __future__ import annotations

import uuid
from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from ml.types import JsonObject
from portal.archive.models import (
    Canvas,
    CanvasKind,
    Modality,
    Video,
)
from portal.archive.selectors.frames import filmstrip_count
from portal.archive.selectors.stains import stain_shown
from portal.archive.serializers.records import StoredFramesSerializer
from portal.archive.tiles.reading import plane_of
from portal.labs.models import Role
from portal.labs.rules import role_in


class LevelSerializer(serializers.Serializer[Any]):
    """A level of the tile grid."""

    width = serializers.IntegerField(source="width_px")
    height = serializers.IntegerField(source="height_px")
    downsample = serializers.FloatField()
    tile_width = serializers.IntegerField(source="tile_width_px")
    tile_height = serializers.IntegerField(source="tile_height_px")


class CanvasCaseSerializer(serializers.Serializer[Any]):
    """The case a canvas belongs to."""

    id = serializers.UUIDField()
    accession = serializers.CharField()


class DisplayRangeSerializer(serializers.Serializer[Any]):
    """Stored values shown as black (``low``) and as white (``high``)."""

    low = serializers.FloatField()
    high = serializers.FloatField(help_text="Below low, large values are dark")


class CanvasVideoSerializer(StoredFramesSerializer):
    """Time on a canvas; ``{pts}`` in ``frame_url`` is a PTS of the frame table."""

    id = serializers.UUIDField()
    frames_url = serializers.CharField()
    frame_url = serializers.CharField()
    filmstrip_url = serializers.CharField()
    filmstrip_count = serializers.IntegerField(help_text="Pictures side by side in the filmstrip")
    media_url = serializers.CharField()
    media_offset_s = serializers.FloatField(help_text="Media time is frame time minus this")
    frame_count = serializers.IntegerField()
    duration_s = serializers.FloatField()
    fps = serializers.FloatField()
    time_base_s = serializers.FloatField()


class CanvasSerializer(serializers.ModelSerializer[Canvas]):
    """A canvas as the viewer needs it. Wants ``request`` in its context."""

    case = CanvasCaseSerializer(read_only=True)
    width = serializers.IntegerField(source="width_px", read_only=True)
    height = serializers.IntegerField(source="height_px", read_only=True)
    levels = LevelSerializer(many=True, read_only=True)
    display_range = DisplayRangeSerializer(read_only=True, allow_null=True)
    file_display_range = DisplayRangeSerializer(read_only=True, allow_null=True)
    stain = serializers.SerializerMethodField()
    tile_url = serializers.SerializerMethodField()
    thumbnail_url = serializers.SerializerMethodField()
    video = serializers.SerializerMethodField()
    can_annotate = serializers.SerializerMethodField()
    can_review = serializers.SerializerMethodField()
    can_scale = serializers.SerializerMethodField()
    can_set_display_range = serializers.SerializerMethodField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._roles: dict[uuid.UUID, Role | None] = {}

    class Meta:
        model = Canvas
        fields = (
            "id",
            "kind",
            "modality",
            "is_modality_by_hand",
            "name",
            "case",
            "width",
            "height",
            "mpp_x",
            "mpp_y",
            "stain",
            "has_icc_profile",
            "display_range",
            "file_display_range",
            "levels",
            "tile_url",
            "thumbnail_url",
            "video",
            "can_annotate",
            "can_review",
            "is_scaled_by_hand",
            "can_scale",
            "can_set_display_range",
        )

    def get_stain(self, canvas: Canvas) -> str:
        """Stain of a slide; empty if unknown."""
        return stain_shown(canvas)

    def get_tile_url(self, canvas: Canvas) -> str | None:
        """Template with ``{z}/{x}/{y}``, z 0 the coarsest; null for a video.

        It holds no secret: each request sends the session's cookie or the token.
        """
        if canvas.kind == CanvasKind.VIDEO:
            return None
        return tile_url(canvas)

    def get_thumbnail_url(self, canvas: Canvas) -> str | None:
        """Null if there is none."""
        return thumbnail_url(canvas)

    @extend_schema_field(CanvasVideoSerializer(allow_null=True))
    def get_video(self, canvas: Canvas) -> JsonObject | None:
        """Null unless the canvas shows a video."""
        video: Video | None = getattr(canvas, "video", None)
        if canvas.kind != CanvasKind.VIDEO or video is None:
            return None
        frame = reverse("api:canvas-frame", kwargs={"pk": canvas.pk, "pts": 0})
        version = f"?v={canvas.content_hash[:12]}"
        return {
            "id": str(video.pk),
            "frames_url": reverse("api:video-frames", args=[video.pk]) + "?limit=5000",
            "frame_url": frame.removesuffix("0.jpg") + "{pts}.jpg",
            "filmstrip_url": reverse("api:canvas-filmstrip", kwargs={"pk": canvas.pk}) + version,
            "filmstrip_count": filmstrip_count(video.frame_count),
            "media_url": reverse("api:video-media", args=[video.pk]),
            "media_offset_s": video.media_offset_s,
            "frame_count": video.frame_count,
            "duration_s": video.duration_s,
            "fps": video.fps,
            "time_base_s": video.time_base_s,
            **StoredFramesSerializer(video).data,
        }

    def get_can_annotate(self, canvas: Canvas) -> bool:
        """Return whether this user may draw."""
        return self._has(Role.ANNOTATOR, canvas)

    def get_can_review(self, canvas: Canvas) -> bool:
        """Return whether this user may accept and reject ROIs."""
        return self._has(Role.REVIEWER, canvas)

    def get_can_scale(self, canvas: Canvas) -> bool:
        """Return whether this user may set the pixel size, which the file does not state."""
        is_open = canvas.is_scaled_by_hand or canvas.mpp_x is None
        is_flat = canvas.kind in (CanvasKind.SLIDE, CanvasKind.STILL)
        is_flat = is_flat and canvas.modality != Modality.ENDOSCOPY
        return is_flat and is_open and self._has(Role.ANNOTATOR, canvas)

    def get_can_set_display_range(self, canvas: Canvas) -> bool:
        """Return whether this user may set it: the image has more than 8 bits."""
        return canvas.file_display_range is not None and self._has(Role.ANNOTATOR, canvas)

    def _has(self, role: Role, canvas: Canvas) -> bool:
        """The role is looked up once for each lab."""
        if canvas.lab_id not in self._roles:
            self._roles[canvas.lab_id] = role_in(self.context["request"].user, canvas.lab_id)
        user_role = self._roles[canvas.lab_id]
        return user_role is not None and user_role.rank >= role.rank


class CanvasChangeSerializer(serializers.Serializer[Any]):
    """One of: pixel size, where the file names none; display range; modality."""

    mpp_x = serializers.FloatField(
        allow_null=True,
        required=False,
        help_text="Microns per pixel, 0.01 to 1000; null removes it",
    )
    mpp_y = serializers.FloatField(required=False, help_text="The same as mpp_x if left out")
    display_range = DisplayRangeSerializer(
        allow_null=True,
        required=False,
        help_text="Of pixels of more than 8 bits; null goes back to the file's own",
    )

    modality = serializers.ChoiceField(
        Modality.choices,
        required=False,
        help_text="Decides how regions are embedded; those of the image are embedded again",
    )

    def validate(self, attrs: JsonObject) -> JsonObject:
        """Require one change."""
        if sum(name in attrs for name in ("mpp_x", "display_range", "modality")) != 1:
            raise serializers.ValidationError("Expected one of mpp_x, display_range and modality.")
        return attrs


class TableFrameSerializer(serializers.Serializer[Any]):
    """A frame of the frame table: index and PTS together name it."""

    index = serializers.IntegerField()
    pts = serializers.IntegerField()
    time_s = serializers.FloatField()
    key = serializers.BooleanField()


class FramePageSerializer(serializers.Serializer[Any]):
    """A stretch of the frame table."""

    time_base_s = serializers.FloatField()
    count = serializers.IntegerField(help_text="Frames of the whole video")
    start = serializers.IntegerField()
    frames = TableFrameSerializer(many=True)
    next = serializers.URLField(allow_null=True, help_text="The stretch after this one")


def tile_url(canvas: Canvas) -> str:
    """URL of the tiles on the tile server; it names the content, so each tile may be cached for
    good."""
    return f"/tiles/{canvas.pk}/{plane_of(canvas).key}/{{z}}/{{x}}/{{y}}.jpg"


def thumbnail_url(canvas: Canvas) -> str | None:
    """Address of the thumbnail; it changes with the content, so it may be cached for good."""
    if not canvas.thumbnail_path:
        return None
    path = reverse("api:canvas-thumbnail", kwargs={"pk": canvas.pk})
    return f"{path}?v={canvas.picture_tag}"

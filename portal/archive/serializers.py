"""The archive as programs (and the viewer) see it."""

from __future__ import annotations

import uuid
from datetime import date
from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from ml.types import JsonObject
from portal.archive.models import (
    AgeBand,
    Canvas,
    CanvasKind,
    Case,
    CaseShare,
    ItemState,
    Sex,
    Slide,
    Video,
)
from portal.archive.selectors import filmstrip_count
from portal.archive.services import MAX_TAG_LENGTH, MAX_TAGS
from portal.archive.tiles.reading import plane_of
from portal.labs.models import Role
from portal.labs.rules import role_in


class CaseSerializer(serializers.ModelSerializer[Case]):
    """A case. ``lab`` may be left out by a person who may write in one lab only."""

    lab = serializers.UUIDField(source="lab_id", required=False)
    tags = serializers.ListField(
        child=serializers.CharField(max_length=MAX_TAG_LENGTH), max_length=MAX_TAGS, required=False
    )
    age_band = serializers.ChoiceField(choices=AgeBand.choices, required=False)
    sex = serializers.ChoiceField(choices=Sex.choices, required=False)
    slide_count = serializers.SerializerMethodField()
    video_count = serializers.SerializerMethodField()
    mosaic_count = serializers.SerializerMethodField()
    shared_until = serializers.SerializerMethodField()

    class Meta:
        model = Case
        fields = (
            "id",
            "lab",
            "accession",
            "patient_key",
            "age_band",
            "sex",
            "organ",
            "procedure",
            "diagnosis",
            "tags",
            "slide_count",
            "video_count",
            "mosaic_count",
            "shared_until",
            "created_at",
            "updated_at",
        )
        validators = ()  # uniqueness is answered by the service, as a conflict

    def get_slide_count(self, case: Case) -> int:
        """Slides and stills."""
        return int(getattr(case, "slide_count", 0))

    def get_video_count(self, case: Case) -> int:
        """Videos."""
        return int(getattr(case, "video_count", 0))

    def get_mosaic_count(self, case: Case) -> int:
        """Mosaics that are ready."""
        return int(getattr(case, "mosaic_count", 0))

    def get_shared_until(self, case: Case) -> date | None:
        """The last day (UTC) on which another lab lets one read it; null in one's own lab."""
        share: CaseShare | None = self.context.get("share")
        return share.until if share else None

    def to_representation(self, case: Case) -> dict[str, Any]:
        """Without the patient's pseudonym where another lab shares the case."""
        shown: dict[str, Any] = super().to_representation(case)
        return shown | {"patient_key": ""} if self.context.get("share") else shown


class ItemErrorSerializer(serializers.Serializer[Any]):
    """Why an item could not be prepared."""

    code = serializers.CharField()
    message = serializers.CharField()


class _ItemSerializer(serializers.Serializer[Any]):
    """What slides and videos have in common."""

    id = serializers.UUIDField(read_only=True)
    case = serializers.UUIDField(source="case_id", read_only=True)
    name = serializers.CharField(read_only=True)
    state = serializers.ChoiceField(choices=ItemState.choices, read_only=True)
    error = serializers.SerializerMethodField()
    warnings = serializers.ListField(child=serializers.CharField(), read_only=True)
    canvas = serializers.UUIDField(source="canvas_id", read_only=True, allow_null=True)
    sha256 = serializers.CharField(source="asset.sha256", read_only=True)
    size_bytes = serializers.IntegerField(source="asset.size_bytes", read_only=True)
    removed = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField(read_only=True)
    updated_at = serializers.DateTimeField(read_only=True)

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_removed(self, item: Slide | Video) -> list[str]:
        """Names of fields that were taken out of the file, since they may name somebody."""
        return list(item.asset.removed or [])

    @extend_schema_field(ItemErrorSerializer(allow_null=True))
    def get_error(self, item: Slide | Video) -> dict[str, str] | None:
        """Null unless the state is *failed*."""
        if item.state != ItemState.FAILED:
            return None
        return {"code": item.error_code, "message": item.error_message}


class SlideSerializer(_ItemSerializer):
    """A slide or still. ``properties`` holds allow-listed vendor metadata only."""

    vendor = serializers.CharField(read_only=True)
    objective_power = serializers.FloatField(read_only=True, allow_null=True)
    properties = serializers.DictField(child=serializers.CharField(), read_only=True)


class VideoSerializer(_ItemSerializer):
    """A video."""

    codec = serializers.CharField(read_only=True)
    container = serializers.CharField(read_only=True)
    duration_s = serializers.FloatField(read_only=True)
    fps = serializers.FloatField(read_only=True)
    frame_count = serializers.IntegerField(read_only=True)
    time_base_s = serializers.FloatField(read_only=True)


class UploadTargetSerializer(serializers.Serializer[Any]):
    """Where a file goes: it must be known before the file is read."""

    case = serializers.UUIDField(help_text="The case that receives it; stands before the file")


class ItemNameSerializer(serializers.Serializer[Any]):
    """Another title."""

    name = serializers.CharField(max_length=200)


class ItemUploadSerializer(UploadTargetSerializer):
    """A file for a case, as multipart form."""

    file = serializers.FileField(help_text="The slide, image or video itself")
    name = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="Shown name; the file's if empty",
    )


class LevelSerializer(serializers.Serializer[Any]):
    """One level of the tile grid."""

    width = serializers.IntegerField(source="width_px")
    height = serializers.IntegerField(source="height_px")
    downsample = serializers.FloatField()
    tile_width = serializers.IntegerField(source="tile_width_px")
    tile_height = serializers.IntegerField(source="tile_height_px")


class CanvasCaseSerializer(serializers.Serializer[Any]):
    """The case a canvas belongs to."""

    id = serializers.UUIDField()
    accession = serializers.CharField()


class CanvasVideoSerializer(serializers.Serializer[Any]):
    """Time on a canvas; ``{pts}`` in ``frame_url`` is a PTS of the frame table."""

    id = serializers.UUIDField()
    frames_url = serializers.CharField()
    frame_url = serializers.CharField()
    filmstrip_url = serializers.CharField()
    filmstrip_count = serializers.IntegerField(help_text="Pictures side by side in the filmstrip")
    media_url = serializers.CharField()
    media_offset_s = serializers.FloatField(help_text="Media time is frame time less this")
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
    tile_url = serializers.SerializerMethodField()
    thumbnail_url = serializers.SerializerMethodField()
    video = serializers.SerializerMethodField()
    can_annotate = serializers.SerializerMethodField()
    can_review = serializers.SerializerMethodField()
    can_scale = serializers.SerializerMethodField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._roles: dict[uuid.UUID, Role | None] = {}

    class Meta:
        model = Canvas
        fields = (
            "id",
            "kind",
            "name",
            "case",
            "width",
            "height",
            "mpp_x",
            "mpp_y",
            "has_icc_profile",
            "levels",
            "tile_url",
            "thumbnail_url",
            "video",
            "can_annotate",
            "can_review",
            "is_scaled_by_hand",
            "can_scale",
        )

    def get_tile_url(self, canvas: Canvas) -> str | None:
        """Template with ``{z}/{x}/{y}``, z 0 the coarsest; null for a video.

        It holds no secret: each request sends the session's cookie or the token.
        """
        if canvas.kind == CanvasKind.VIDEO:
            return None
        return tile_url(canvas)

    def get_thumbnail_url(self, canvas: Canvas) -> str | None:
        """Null where there is none."""
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
        }

    def get_can_annotate(self, canvas: Canvas) -> bool:
        """Whether this user may draw."""
        return self._has(Role.ANNOTATOR, canvas)

    def get_can_review(self, canvas: Canvas) -> bool:
        """Whether this user may accept and reject ROIs."""
        return self._has(Role.REVIEWER, canvas)

    def get_can_scale(self, canvas: Canvas) -> bool:
        """Whether this user may set the pixel size: the file names none."""
        is_open = canvas.is_scaled_by_hand or canvas.mpp_x is None
        is_flat = canvas.kind in (CanvasKind.SLIDE, CanvasKind.STILL)
        return is_flat and is_open and self._has(Role.ANNOTATOR, canvas)

    def _has(self, role: Role, canvas: Canvas) -> bool:
        """Asked once for each lab."""
        if canvas.lab_id not in self._roles:
            self._roles[canvas.lab_id] = role_in(self.context["request"].user, canvas.lab_id)
        mine = self._roles[canvas.lab_id]
        return mine is not None and mine.rank >= role.rank


class CanvasScaleSerializer(serializers.Serializer[Any]):
    """The pixel size, where the file names none."""

    mpp_x = serializers.FloatField(
        allow_null=True, help_text="Microns per pixel, 0.01 to 1000; null takes it back"
    )
    mpp_y = serializers.FloatField(required=False, help_text="As mpp_x where it is left out")


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
    """Where the fast path answers tiles; names the content, so each may be cached for good."""
    return f"/tiles/{canvas.pk}/{plane_of(canvas).key}/{{z}}/{{x}}/{{y}}.jpg"


def thumbnail_url(canvas: Canvas) -> str | None:
    """Address of the thumbnail; it changes with the content, so it may be cached for good."""
    if not canvas.thumbnail_path:
        return None
    path = reverse("api:canvas-thumbnail", kwargs={"pk": canvas.pk})
    return f"{path}?v={canvas.content_hash[:12]}"

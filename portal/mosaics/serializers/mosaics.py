"""Mosaics as programs (and the viewer) see them."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from ml.types import JsonObject
from portal.annotations.serializers import FiniteField
from portal.archive.models import ItemState
from portal.archive.serializers.canvases import thumbnail_url
from portal.archive.serializers.records import ItemErrorSerializer
from portal.jobs.serializers import JobSerializer
from portal.mosaics.models import FrameStatus, Mosaic, MosaicComponent
from portal.mosaics.options import MAX_STEP
from portal.mosaics.selectors.frames import frame_runs, mosaic_report, runs_lost

LOST_LISTED = 100
"""Runs of lost frames that are named: the longest say what went wrong."""


def layer_url(component: MosaicComponent, name: str) -> str:
    """Address of a layer's picture."""
    path = reverse("api:mosaic-layer", kwargs={"pk": component.mosaic_id, "name": name})
    return f"{path}?component={component.index}&v={component.canvas.content_hash[:12]}"


class MosaicConfigSerializer(serializers.Serializer[Any]):
    """Options of a build; omitted ones keep their defaults."""

    step = serializers.IntegerField(
        required=False, help_text="Use every step-th frame; 1 by default"
    )
    motion_model = serializers.CharField(
        required=False, help_text="auto, similarity, affine or homography; auto by default"
    )
    start_s = serializers.FloatField(required=False, help_text="First second used of the video")
    end_s = serializers.FloatField(required=False, help_text="Last second used of the video")


class MosaicCreateSerializer(serializers.Serializer[Any]):
    """Video and options of a new mosaic."""

    video = serializers.UUIDField()
    config = serializers.DictField(
        required=False,
        help_text="start_s, end_s (the span; by default the whole video), step (use every step-th "
        "frame; 1 by default), motion_model (auto, similarity, affine, homography)",
    )


class ReasonSerializer(serializers.Serializer[Any]):
    """Number of frames with this reason."""

    status = serializers.ChoiceField(FrameStatus.choices)
    code = serializers.CharField(source="reason.code")
    reason = serializers.CharField(source="reason.name")
    count = serializers.IntegerField()


class LostRunSerializer(serializers.Serializer[Any]):
    """Frames in a row that are in no component, for one reason; both ends belong to it."""

    status = serializers.ChoiceField(FrameStatus.choices)
    code = serializers.CharField(source="kind.code")
    reason = serializers.CharField(source="kind.name")
    frames = serializers.IntegerField(source="width")
    first_s = serializers.FloatField()
    last_s = serializers.FloatField()
    first_index = serializers.IntegerField()
    last_index = serializers.IntegerField()


class MosaicReportSerializer(serializers.Serializer[Any]):
    """Number of frames per status and reason."""

    frames = serializers.IntegerField()
    registered = serializers.IntegerField()
    skipped = serializers.IntegerField()
    failed = serializers.IntegerField()
    reasons = ReasonSerializer(many=True)


class MosaicLayerSerializer(serializers.Serializer[Any]):
    """A layer as 8-bit grey PNG: 0 if nothing was seen, else ``minimum`` (1) to ``maximum``."""

    name = serializers.CharField(help_text="coverage, count, uncertainty, time or time_last")
    unit = serializers.CharField()
    minimum = serializers.FloatField()
    maximum = serializers.FloatField()
    downsample = serializers.FloatField(help_text="Mosaic pixels per layer pixel")
    url = serializers.CharField()


class MosaicComponentSerializer(serializers.Serializer[Any]):
    """A connected component of a mosaic, with its canvas."""

    index = serializers.IntegerField()
    canvas = serializers.UUIDField(source="canvas_id")
    width = serializers.IntegerField(source="canvas.width_px")
    height = serializers.IntegerField(source="canvas.height_px")
    anchor_index = serializers.IntegerField(allow_null=True)
    registered_count = serializers.IntegerField()
    spans = serializers.ListField(
        child=serializers.DictField(), help_text="Runs of frames, in order, with their seconds"
    )
    quality = serializers.DictField()
    layers = serializers.SerializerMethodField()

    @extend_schema_field(MosaicLayerSerializer(many=True))
    def get_layers(self, component: MosaicComponent) -> list[JsonObject]:
        """Layers with their URLs, which change with the content."""
        return [
            {
                **{key: layer[key] for key in ("name", "unit", "minimum", "maximum", "downsample")},
                "url": layer_url(component, layer["name"]),
            }
            for layer in component.layers
        ]


class MosaicSerializer(serializers.Serializer[Any]):
    """A mosaic; it shows on ``canvas`` once it is ready."""

    id = serializers.UUIDField()
    case = serializers.UUIDField(source="case_id")
    video = serializers.UUIDField(source="video_id")
    video_canvas = serializers.UUIDField(source="video.canvas_id", allow_null=True)
    frame_width = serializers.IntegerField(
        source="video.canvas.width_px", default=None, allow_null=True
    )
    frame_height = serializers.IntegerField(
        source="video.canvas.height_px", default=None, allow_null=True
    )
    canvas = serializers.UUIDField(source="canvas_id", allow_null=True)
    name = serializers.CharField()
    state = serializers.ChoiceField(ItemState.choices)
    error = serializers.SerializerMethodField()
    config = MosaicConfigSerializer()
    width = serializers.IntegerField(source="canvas.width_px", default=None, allow_null=True)
    height = serializers.IntegerField(source="canvas.height_px", default=None, allow_null=True)
    preview_url = serializers.SerializerMethodField()
    frame_count = serializers.IntegerField()
    registered_count = serializers.IntegerField()
    motion_model = serializers.CharField()
    anchor_index = serializers.IntegerField(allow_null=True)
    seconds = serializers.FloatField(help_text="How long the build took")
    components = MosaicComponentSerializer(source="components.all", many=True)
    quality = serializers.DictField(help_text="Figures of how well it fits")
    engine = serializers.DictField(help_text="What built it: version, and hash of all its settings")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    @extend_schema_field(ItemErrorSerializer(allow_null=True))
    def get_error(self, mosaic: Mosaic) -> dict[str, str] | None:
        """Null unless the state is *failed*."""
        if mosaic.state != ItemState.FAILED:
            return None
        return {"code": mosaic.error_code, "message": mosaic.error_message}

    def get_preview_url(self, mosaic: Mosaic) -> str | None:
        """A small JPEG of the whole; null until it is ready."""
        return thumbnail_url(mosaic.canvas) if mosaic.canvas else None


class MosaicDetailSerializer(MosaicSerializer):
    """A mosaic, with the report on its frames."""

    report = serializers.SerializerMethodField()
    lost = serializers.SerializerMethodField()
    gaps = serializers.ListField(
        child=serializers.DictField(),
        help_text="Runs of frames in no component, each with a sentence",
    )

    @extend_schema_field(MosaicReportSerializer)
    def get_report(self, mosaic: Mosaic) -> Any:
        """Counts by status and reason."""
        return MosaicReportSerializer(mosaic_report(mosaic)).data

    @extend_schema_field(LostRunSerializer(many=True))
    def get_lost(self, mosaic: Mosaic) -> Any:
        """The 100 longest runs of frames in no component, one reason each; also where it failed."""
        return LostRunSerializer(runs_lost(frame_runs(mosaic))[:LOST_LISTED], many=True).data


class MosaicAcceptedSerializer(MosaicSerializer):
    """A mosaic, with the job that builds it; null if it was built already."""

    job = JobSerializer(allow_null=True)


class EstimateQuerySerializer(serializers.Serializer[Any]):
    """Query parameters: video and options."""

    video = serializers.UUIDField()
    start_s = FiniteField(required=False)
    end_s = FiniteField(required=False)
    step = serializers.IntegerField(required=False, min_value=1, max_value=MAX_STEP)


class EstimateSerializer(serializers.Serializer[Any]):
    """Estimated cost of a build."""

    frames = serializers.IntegerField(help_text="Frames in the span")
    used = serializers.IntegerField(help_text="Frames that would be used: every step-th of them")
    seconds = serializers.FloatField(
        allow_null=True, help_text="null before this lab has built a mosaic"
    )
    builds = serializers.IntegerField(help_text="Earlier builds that the rate was measured on")

"""``/api/v1/mosaics/``."""

from __future__ import annotations

import math
from typing import Any, cast

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from portal.archive.models import ItemState
from portal.archive.selectors import video_get
from portal.archive.serializers import ItemErrorSerializer, thumbnail_url
from portal.core.paging import Paging
from portal.jobs.api import JobSerializer, job_accepted
from portal.labs.requests import user_of
from portal.mosaics import selectors, services
from portal.mosaics.models import FrameStatus, Mosaic, MosaicFrame

UUID_REGEX = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


class MosaicConfigSerializer(serializers.Serializer[Any]):
    """Choices; what is left out keeps its default."""

    step = serializers.IntegerField(required=False, help_text="Use every step-th frame; 1")
    model = serializers.CharField(
        required=False, help_text="auto, similarity, affine or homography; auto"
    )


class MosaicCreateSerializer(serializers.Serializer[Any]):
    """Which video, and how."""

    video = serializers.UUIDField()
    config = serializers.DictField(
        required=False,
        help_text="step (use every step-th frame; 1), model (auto, similarity, affine, homography)",
    )


class ReasonSerializer(serializers.Serializer[Any]):
    """So many frames, for this reason."""

    status = serializers.ChoiceField(FrameStatus.choices)
    reason = serializers.CharField()
    count = serializers.IntegerField()


class MosaicReportSerializer(serializers.Serializer[Any]):
    """What became of the frames."""

    frames = serializers.IntegerField()
    registered = serializers.IntegerField()
    skipped = serializers.IntegerField()
    failed = serializers.IntegerField()
    reasons = ReasonSerializer(many=True)


class MosaicSerializer(serializers.Serializer[Any]):
    """A mosaic; it shows on ``canvas`` once it is ready."""

    id = serializers.UUIDField()
    case = serializers.UUIDField(source="case_id")
    video = serializers.UUIDField(source="video_id")
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
    """With the report on its frames."""

    report = serializers.SerializerMethodField()

    @extend_schema_field(MosaicReportSerializer)
    def get_report(self, mosaic: Mosaic) -> Any:
        """Counts by status and reason."""
        return MosaicReportSerializer(selectors.mosaic_report(mosaic)).data


class MosaicAcceptedSerializer(MosaicSerializer):
    """With the job that builds it; null where it was built already."""

    job = JobSerializer(allow_null=True)


class MosaicFrameSerializer(serializers.ModelSerializer[MosaicFrame]):
    """One frame. The matrix is 3 x 3, row major, frame to mosaic pixels; null if unplaced."""

    H_mosaic_from_frame = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField()), allow_null=True
    )

    class Meta:
        model = MosaicFrame
        fields = ("index", "pts", "status", "reason", "H_mosaic_from_frame", "links", "error_px")


class FrameQuerySerializer(serializers.Serializer[Any]):
    """Filter of the frames."""

    status = serializers.ChoiceField(FrameStatus.choices, required=False)


class PointSerializer(serializers.Serializer[Any]):
    """A point of the mosaic, in its level-0 pixels."""

    x = serializers.FloatField()
    y = serializers.FloatField()

    def validate(self, attrs: dict[str, float]) -> dict[str, float]:
        """Finite."""
        for name, value in attrs.items():
            if not math.isfinite(value):
                raise serializers.ValidationError({name: "A finite number is required."})
        return attrs


class SightingSerializer(serializers.Serializer[Any]):
    """A frame that saw the point, and where in the frame."""

    index = serializers.IntegerField()
    pts = serializers.IntegerField()
    time_s = serializers.FloatField()
    xy_frame = serializers.ListField(child=serializers.FloatField(), min_length=2, max_length=2)
    from_centre_px = serializers.FloatField()


class FramesAtSerializer(serializers.Serializer[Any]):
    """All frames that saw a point, the best placed first."""

    count = serializers.IntegerField()
    results = SightingSerializer(many=True)


class MosaicFilter(filters.FilterSet):
    """Filters of the list."""

    case = filters.UUIDFilter(field_name="case_id")
    video = filters.UUIDFilter(field_name="video_id")
    state = filters.ChoiceFilter(choices=ItemState.choices)

    class Meta:
        model = Mosaic
        fields = ("case", "video", "state")


class FramePaging(Paging):
    """Frames are small: up to 5,000 a page."""

    page_size = 500
    max_page_size = 5000


class MosaicViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Any]):
    """Mosaics of videos, and what became of every frame."""

    queryset = Mosaic.objects.none()
    filterset_class = MosaicFilter
    lookup_value_regex = UUID_REGEX

    def get_queryset(self) -> QuerySet[Mosaic]:
        """What this user may see."""
        return selectors.mosaic_list(user_of(self.request))

    def get_serializer_class(self) -> Any:
        """A list goes without reports."""
        return MosaicSerializer if self.action == "list" else MosaicDetailSerializer

    @extend_schema(
        request=MosaicCreateSerializer,
        responses={
            202: OpenApiResponse(MosaicAcceptedSerializer, "Being built; Location is the job"),
            200: OpenApiResponse(MosaicAcceptedSerializer, "Built before, with these choices"),
        },
        summary="Build the mosaic of a video",
    )
    def create(self, request: Request) -> Response:
        """Asking again while it is built answers the same mosaic and job; nothing runs twice."""
        sent = MosaicCreateSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        user = user_of(request)
        asked = services.mosaic_create(
            video=video_get(user=user, video_id=sent.validated_data["video"]),
            user=user,
            config=sent.validated_data.get("config"),
        )
        body = MosaicSerializer(asked.mosaic).data
        if asked.job is not None and not asked.job.has_ended:
            return job_accepted(asked.job, request, **body)
        return Response({**body, "job": JobSerializer(asked.job).data if asked.job else None})

    @extend_schema(
        parameters=[FrameQuerySerializer],
        responses=MosaicFrameSerializer(many=True),
        filters=False,
        summary="What became of every frame",
    )
    @action(detail=True, methods=["get"], pagination_class=FramePaging)
    def frames(self, request: Request, pk: str) -> Response:
        """In order, with transform, status and reason."""
        mosaic = self._mosaic(pk)
        query = FrameQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        rows = selectors.mosaic_frames(mosaic, status=query.validated_data.get("status", ""))
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(MosaicFrameSerializer(page, many=True).data)

    @extend_schema(
        parameters=[PointSerializer],
        responses=FramesAtSerializer,
        filters=False,
        summary="Which frames saw a point",
    )
    @action(detail=True, methods=["get"], url_path="frames-at", pagination_class=None)
    def frames_at(self, request: Request, pk: str) -> Response:
        """By the inverse of each frame's transform; where it is nearest to the centre first."""
        mosaic = self._mosaic(pk)
        point = PointSerializer(data=request.query_params)
        point.is_valid(raise_exception=True)
        seen = selectors.frames_at(mosaic, **point.validated_data)
        return Response({"count": len(seen), "results": SightingSerializer(seen, many=True).data})

    def _mosaic(self, pk: str) -> Mosaic:
        return cast(Mosaic, self.get_object())


router_entries: list[tuple[str, Any, str]] = [("mosaics", MosaicViewSet, "mosaic")]

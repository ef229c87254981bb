"""``/api/v1/mosaics/``."""

from __future__ import annotations

from typing import Any, cast

from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins, serializers
from rest_framework import status as http_status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from ml.types import JsonObject
from portal.annotations.selectors.rois import roi_get
from portal.archive.models import ItemState
from portal.archive.selectors.items import video_get
from portal.core.api.paging import Paging
from portal.core.api.views import ApiViewSet
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, rejections
from portal.jobs.api import job_answered
from portal.labs.models import TokenArea
from portal.labs.requests import UUID_REGEX, user_of
from portal.mosaics import downloads
from portal.mosaics.models import Mosaic
from portal.mosaics.options import options_clean
from portal.mosaics.selectors import mosaics as selectors
from portal.mosaics.selectors.frames import frame_columns, mosaic_frames
from portal.mosaics.selectors.frames_at_point import frames_at_point
from portal.mosaics.selectors.projection import frames_of_roi, rois_in_frame, rois_on_component
from portal.mosaics.serializers.frames import (
    FrameAtPointSerializer,
    FrameColumnsSerializer,
    FrameQuerySerializer,
    FramesAtPointSerializer,
    MosaicFrameSerializer,
    PointSerializer,
)
from portal.mosaics.serializers.mosaics import (
    EstimateQuerySerializer,
    EstimateSerializer,
    MosaicAcceptedSerializer,
    MosaicCreateSerializer,
    MosaicDetailSerializer,
    MosaicSerializer,
)
from portal.mosaics.serializers.projection import (
    ProjectedRoiSerializer,
    ProjectedRoisSerializer,
    ProjectionQuerySerializer,
    RoiFramesQuerySerializer,
    RoiFramesSerializer,
    RoiInFrameSerializer,
)
from portal.mosaics.services import mosaics as services
from portal.mosaics.services import removal

PNG = {(200, "image/png"): OpenApiTypes.BINARY}
JPEG = {(200, "image/jpeg"): OpenApiTypes.BINARY}
TIFF = {(200, "image/tiff"): OpenApiTypes.BINARY}
JSON = {(200, "application/json"): OpenApiTypes.OBJECT}


class ComponentQuerySerializer(serializers.Serializer[Any]):
    """Query parameters: component of the mosaic."""

    component = serializers.IntegerField(
        required=False, min_value=0, max_value=10_000, default=0, help_text="Counted from 0"
    )


class PngQuerySerializer(ComponentQuerySerializer):
    """Query parameters: component and size."""

    size = serializers.IntegerField(
        required=False,
        min_value=downloads.PNG_SMALLEST,
        max_value=downloads.PNG_LARGEST,
        default=2048,
        help_text="Longer side, pixels; never enlarged",
        error_messages={
            "max_value": f"At most {downloads.PNG_LARGEST} px; pyramid.tif holds all pixels."
        },
    )


class MosaicFilter(filters.FilterSet):
    """Filters of the list."""

    case = filters.UUIDFilter(field_name="case_id")
    video = filters.UUIDFilter(field_name="video_id")
    canvas = filters.UUIDFilter(
        field_name="components__canvas_id", help_text="The canvas that it is shown on"
    )
    state = filters.ChoiceFilter(choices=ItemState.choices)

    class Meta:
        model = Mosaic
        fields = ("case", "video", "canvas", "state")


class FramePaging(Paging):
    """Frames are small: up to 5,000 a page."""

    page_size = 500
    max_page_size = 5000


@audited(
    list=AuditRule("mosaic.listed"),
    create=AuditRule("mosaic.requested", "video"),
    retrieve=AuditRule("mosaic.viewed", "mosaic", "pk", every_s=MINUTE_S),
    destroy=rejections("trash.put", "mosaic", "pk"),
    estimate=None,
    frames=AuditRule("mosaic.viewed", "mosaic", "pk", every_s=HOUR_S),
    frames_at_point=AuditRule("mosaic.viewed", "mosaic", "pk", every_s=HOUR_S),
    image=AuditRule("mosaic.downloaded", "mosaic", "pk", every_s=MINUTE_S),
    layer=AuditRule("mosaic.viewed", "mosaic", "pk", every_s=HOUR_S),
    manifest=AuditRule("mosaic.downloaded", "mosaic", "pk", every_s=MINUTE_S),
    outlines=AuditRule("mosaic.viewed", "mosaic", "pk", every_s=HOUR_S),
    preview=AuditRule("mosaic.viewed", "mosaic", "pk", every_s=HOUR_S),
    projected_rois=AuditRule("mosaic.viewed", "mosaic", "pk", every_s=HOUR_S),
    pyramid=AuditRule("mosaic.downloaded", "mosaic", "pk", every_s=MINUTE_S),
    roi_frames=AuditRule("mosaic.viewed", "mosaic", "pk", every_s=HOUR_S),
)
class MosaicViewSet(
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    ApiViewSet[Any],
):
    """Mosaics of videos, and what became of every frame."""

    area = TokenArea.MOSAICS
    queryset = Mosaic.objects.none()
    filterset_class = MosaicFilter
    lookup_value_regex = UUID_REGEX

    def get_queryset(self) -> QuerySet[Mosaic]:
        """Mosaics visible to the user; shared ones only in the list of one case, video or
        canvas."""
        is_named = {"case", "video", "canvas"} & self.request.query_params.keys()
        with_shared = self.action != "list" or bool(is_named)
        return selectors.mosaic_list(user_of(self.request), with_shared=with_shared)

    def get_serializer_class(self) -> Any:
        """Omit the report in lists."""
        return MosaicSerializer if self.action == "list" else MosaicDetailSerializer

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """An image element asks for image/*; errors are problem+json anyway."""
        files = {"layer", "preview", "image", "pyramid", "manifest"}
        return super().perform_content_negotiation(request, force or self.action in files)

    @extend_schema(
        request=MosaicCreateSerializer,
        responses={
            202: OpenApiResponse(
                MosaicAcceptedSerializer, "It is being built; `Location` names the job"
            ),
            200: OpenApiResponse(
                MosaicAcceptedSerializer, "It was built before with these settings"
            ),
        },
        summary="Build the mosaic of a video",
    )
    def create(self, request: Request) -> Response:
        """Submit the build of a mosaic.

        While it runs, repeating the request returns the same mosaic and job.
        """
        serializer = MosaicCreateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        user = user_of(request)
        video = video_get(user=user, video_id=serializer.validated_data["video"])
        set_audited_id(request, video.pk)
        requested = services.mosaic_create(
            video=video,
            user=user,
            config=serializer.validated_data.get("config"),
        )
        return job_answered(requested.job, request, **MosaicSerializer(requested.mosaic).data)

    @extend_schema(responses={204: None}, summary="Delete a mosaic")
    def destroy(self, request: Request, pk: str) -> Response:
        """Move a mosaic with its ROIs to the trash; a running build is cancelled first."""
        removal.mosaic_delete(mosaic=self._mosaic(), user=user_of(request))
        return Response(status=http_status.HTTP_204_NO_CONTENT)

    @extend_schema(
        parameters=[EstimateQuerySerializer],
        responses=EstimateSerializer,
        filters=False,
        summary="Estimate how long a build would take",
    )
    @action(detail=False, methods=["get"], pagination_class=None)
    def estimate(self, request: Request) -> Response:
        """Number of frames of a span, and the time at the rate of the lab's last builds."""
        data = _query_params(EstimateQuerySerializer, request)
        video = video_get(user=user_of(request), video_id=data.pop("video"))
        return Response(
            EstimateSerializer(selectors.build_estimate(video, options_clean(data))).data
        )

    @extend_schema(
        parameters=[FrameQuerySerializer],
        responses=MosaicFrameSerializer(many=True),
        filters=False,
        summary="List every frame with its state",
    )
    @action(detail=True, methods=["get"], pagination_class=FramePaging)
    def frames(self, request: Request, pk: str) -> Response:
        """Frames in order, with transform, status and reason."""
        rows = mosaic_frames(self._mosaic(), **_query_params(FrameQuerySerializer, request))
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(MosaicFrameSerializer(page, many=True).data)

    @extend_schema(
        responses=FrameColumnsSerializer,
        filters=False,
        summary="Get all frames at once, for drawing",
    )
    @action(detail=True, methods=["get"], pagination_class=None)
    def outlines(self, request: Request, pk: str) -> Response:
        """Columns of index, PTS, reason and outline on the mosaic of all frames."""
        return Response(frame_columns(self._mosaic()))

    @extend_schema(
        parameters=[PointSerializer],
        responses=FramesAtPointSerializer,
        filters=False,
        summary="Find the frames that saw a point",
    )
    @action(detail=True, methods=["get"], url_path="frames-at-point", pagination_class=None)
    def frames_at_point(self, request: Request, pk: str) -> Response:
        """Frames that show the point, by the inverse of their transforms; the sharpest first."""
        mosaic = self._mosaic()
        visible = frames_at_point(mosaic, **_query_params(PointSerializer, request))
        rows = _video_frames(mosaic, FrameAtPointSerializer, visible.frames)
        return Response({"count": visible.count, "results": rows})

    @extend_schema(
        parameters=[ProjectionQuerySerializer],
        responses=ProjectedRoisSerializer,
        filters=False,
        summary="Project ROIs between the mosaic and the frames of its video",
    )
    @action(detail=True, methods=["get"], url_path="projected-rois", pagination_class=None)
    def projected_rois(self, request: Request, pk: str) -> Response:
        """With `pts`: the mosaic's ROIs in that frame. Without: the frames' ROIs on a component."""
        mosaic, data = self._mosaic(), _query_params(ProjectionQuerySerializer, request)
        if "pts" in data:
            projected = rois_in_frame(user_of(request), mosaic, pts=data["pts"])
        else:
            component = data.get("component", 0)
            projected = rois_on_component(user_of(request), mosaic, component=component)
        rows = ProjectedRoiSerializer(projected, many=True).data
        return Response({"count": len(projected), "results": rows})

    @extend_schema(
        parameters=[RoiFramesQuerySerializer],
        responses=RoiFramesSerializer,
        filters=False,
        summary="Find the frames that see an ROI of the mosaic, and its place in each",
    )
    @action(detail=True, methods=["get"], url_path="roi-frames", pagination_class=None)
    def roi_frames(self, request: Request, pk: str) -> Response:
        """Frames that show the ROI, at most 200; the sharpest that show all of it first."""
        mosaic, data = self._mosaic(), _query_params(RoiFramesQuerySerializer, request)
        frames = frames_of_roi(mosaic, roi_get(user_of(request), data["roi"]))
        rows = _video_frames(mosaic, RoiInFrameSerializer, frames)
        return Response({"count": len(frames), "results": rows})

    @extend_schema(parameters=[ComponentQuerySerializer], responses=PNG, filters=False)
    def layer(self, request: Request, pk: str, name: str) -> HttpResponseBase:
        """A layer as 8-bit grey PNG; 0 where no frame covers it, see ``components[].layers``."""
        mosaic, data = self._mosaic(), _query_params(ComponentQuerySerializer, request)
        return downloads.layer_response(_http(request), mosaic, name=name, **data)

    @extend_schema(responses=JPEG, filters=False)
    def preview(self, request: Request, pk: str) -> HttpResponseBase:
        """Preview of a running build as a small JPEG; 404 if there is none yet."""
        return downloads.preview_response(_http(request), self._mosaic())

    @extend_schema(parameters=[PngQuerySerializer], responses=PNG, filters=False)
    def image(self, request: Request, pk: str) -> HttpResponseBase:
        """The mosaic as PNG at a chosen size."""
        mosaic, data = self._mosaic(), _query_params(PngQuerySerializer, request)
        size_px = data.pop("size")
        return downloads.png_response(_http(request), mosaic, size_px=size_px, **data)

    @extend_schema(parameters=[ComponentQuerySerializer], responses=TIFF, filters=False)
    def pyramid(self, request: Request, pk: str) -> HttpResponseBase:
        """The mosaic as pyramidal TIFF in full resolution; supports byte ranges."""
        mosaic, data = self._mosaic(), _query_params(ComponentQuerySerializer, request)
        return downloads.pyramid_response(_http(request), mosaic, **data)

    @extend_schema(responses=JSON, filters=False)
    def manifest(self, request: Request, pk: str) -> HttpResponseBase:
        """Complete result of the build: frames, transforms, covariances, gaps, figures."""
        return downloads.manifest_response(_http(request), self._mosaic())

    def _mosaic(self) -> Mosaic:
        return cast(Mosaic, self.get_object())


def _query_params(kind: type[serializers.Serializer[Any]], request: Request) -> JsonObject:
    """Validated query parameters."""
    query = kind(data=request.query_params)
    query.is_valid(raise_exception=True)
    return dict(query.validated_data)


def _video_frames(mosaic: Mosaic, kind: type[serializers.Serializer[Any]], frames: Any) -> Any:
    """Frames with the addresses of their pictures in the mosaic's video."""
    return kind(frames, many=True, context={"canvas_id": mosaic.video.canvas_id}).data


def _http(request: Request) -> HttpRequest:
    return request._request

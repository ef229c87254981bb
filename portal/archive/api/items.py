"""REST: slides and videos."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import QueryDict
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import mixins, serializers
from rest_framework import status as http_status
from rest_framework.decorators import action
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from ml.imaging.formats.sniff import FileKind
from portal.archive.api.media import clip_response, media_response
from portal.archive.filters import SlideFilter, VideoFilter
from portal.archive.models import Case, Slide, Video
from portal.archive.receiving import admitted, announced_bytes, files_receive
from portal.archive.selectors.cases import case_get
from portal.archive.selectors.frames import frame_page
from portal.archive.selectors.items import slide_list, video_list
from portal.archive.serializers.canvases import FramePageSerializer
from portal.archive.serializers.records import (
    ItemNameSerializer,
    ItemUploadSerializer,
    SlideChangesSerializer,
    SlideSerializer,
    UploadTargetSerializer,
    VideoSerializer,
)
from portal.archive.services.clips import MAX_CLIP_FRAMES, clip_request
from portal.archive.services.items import ItemReceived, item_delete, item_receive, item_rename
from portal.archive.services.stains import slide_stain_set
from portal.archive.services.uploads import upload_admit
from portal.core.api.parsers import BoundedJsonParser
from portal.core.api.views import ApiViewSet
from portal.core.errors import InvalidInputError
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, rejections
from portal.jobs.api import job_accepted, job_answered
from portal.jobs.serializers import JobSerializer
from portal.labs.models import TokenArea
from portal.labs.requests import UUID_REGEX, user_of

INT32_MAX = 2**31 - 1
MAX_FRAMES_PER_PAGE = 5000  # about 350 kB of JSON


class ClipSpanSerializer(serializers.Serializer[Any]):
    """First and last frame of a clip, counted from 0, both inclusive."""

    first_index = serializers.IntegerField(min_value=0, max_value=INT32_MAX)
    last_index = serializers.IntegerField(
        min_value=0, max_value=INT32_MAX, help_text=f"At most {MAX_CLIP_FRAMES} frames"
    )


class SlideAcceptedSerializer(SlideSerializer):
    """A slide with the job that prepares it."""

    job = JobSerializer(read_only=True, allow_null=True)


class VideoAcceptedSerializer(VideoSerializer):
    """A video with the job that prepares it."""

    job = JobSerializer(read_only=True, allow_null=True)


def accepts_file(serializer: type[SlideSerializer] | type[VideoSerializer]) -> Callable[..., Any]:
    """The schema of an endpoint that takes a file and answers 202."""
    return extend_schema(
        request={"multipart/form-data": ItemUploadSerializer},
        responses={
            202: OpenApiResponse(serializer, description="Received; `Location` names the job"),
            200: OpenApiResponse(serializer, description="The case already has these bytes"),
        },
    )


class ItemViewSet(
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    ApiViewSet[Any],
):
    """Shared behaviour of slides and videos: uploaded as a file, prepared by a job."""

    area = TokenArea.CASES
    if_match: ClassVar = {"PATCH": True, "DELETE": False}
    kinds: tuple[FileKind, ...] = ()
    takes_no_key = "The same bytes sent again are recognised by their hash."
    receives_files = True  # authenticates before the body is read
    parser_classes = (MultiPartParser,)
    lookup_value_regex = UUID_REGEX

    def with_shared(self) -> bool:
        """Return whether what other labs share is meant as well."""
        return self.action != "list" or "case" in self.request.query_params

    def create(self, request: Request) -> Response:
        """Receive a file; 202 with the job that prepares it, 200 if the case has the file."""
        user, http = user_of(request), request._request
        cases: list[Case] = []

        def admit(fields: QueryDict) -> None:
            target = UploadTargetSerializer(data=http.GET.dict() | fields.dict())
            if not target.is_valid():
                raise InvalidInputError(
                    "case: name the case in a field before the file, or in the URL.",
                    details={"errors": target.errors},
                )
            case = case_get(user=user, case_id=target.validated_data["case"])
            upload_admit(case=case, user=user, size_bytes=announced_bytes(http))
            cases.append(case)

        is_known = "case" in http.GET
        if is_known:
            admit(QueryDict())
        fields, files = files_receive(http, admit=admitted if is_known else admit)
        serializer = ItemUploadSerializer(
            data={"case": cases[0].pk, **fields.dict(), **files.dict()}
        )
        serializer.is_valid(raise_exception=True)
        file = serializer.validated_data["file"]
        received = item_receive(
            case=cases[0],
            file=file,
            filename=file.name or "",
            name=serializer.validated_data.get("name", ""),
            user=user,
            kinds=self.kinds,
        )
        return self._answer(received, request)

    def get_parsers(self) -> list[BaseParser]:
        """Files come as forms, a title as JSON."""
        request = getattr(self, "request", None)
        if request is not None and request.method == "PATCH":
            return [BoundedJsonParser()]
        return super().get_parsers()

    @extend_schema(request={"application/json": ItemNameSerializer})
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change the title on all pages."""
        return self._change(request, ItemNameSerializer)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Move to the trash, with ROIs and mosaics; 409 while it is being prepared."""
        item_delete(item=self.get_object(), user=user_of(request))
        return Response(status=http_status.HTTP_204_NO_CONTENT)

    def _change(self, request: Request, body: type[ItemNameSerializer]) -> Response:
        item, serializer = self.get_object(), body(data=request.data)
        serializer.is_valid(raise_exception=True)
        if not serializer.validated_data:
            raise InvalidInputError("Nothing to change: send a name or a stain.")
        if "name" in serializer.validated_data:
            name = serializer.validated_data["name"]
            item_rename(item=item, user=user_of(request), name=name)
        if "stain" in serializer.validated_data:
            stain = serializer.validated_data["stain"]
            slide_stain_set(slide=item, user=user_of(request), stain=stain)
        return Response(self.get_serializer(self.get_object()).data)

    def _answer(self, received: ItemReceived, request: Request) -> Response:
        body = self.get_serializer(received.item).data
        return job_answered(received.job, request, **body)


@audited(
    list=AuditRule("item.listed"),
    create=rejections("item.received"),
    retrieve=AuditRule("item.viewed", "slide", "pk"),
    partial_update=rejections("item.renamed", "slide", "pk"),
    destroy=rejections("trash.put", "slide", "pk"),
)
class SlideViewSet(ItemViewSet):
    """Slides and stills."""

    serializer_class = SlideSerializer
    filterset_class = SlideFilter
    queryset = Slide.objects.none()
    kinds = ("slide", "still")

    def get_queryset(self) -> QuerySet[Slide]:
        """Restrict to slides visible to the user; shared ones appear only in the list of one
        case."""
        return slide_list(user=user_of(self.request), with_shared=self.with_shared())

    @accepts_file(SlideAcceptedSerializer)
    def create(self, request: Request) -> Response:
        """Receive a slide or an image; 202 with the job that prepares it."""
        return super().create(request)

    @extend_schema(request={"application/json": SlideChangesSerializer})
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change the title on all pages, or the stain."""
        return self._change(request, SlideChangesSerializer)


@audited(
    list=AuditRule("item.listed"),
    create=rejections("item.received"),
    retrieve=AuditRule("item.viewed", "video", "pk"),
    partial_update=rejections("item.renamed", "video", "pk"),
    destroy=rejections("trash.put", "video", "pk"),
    frames=AuditRule("item.viewed", "video", "pk", every_s=HOUR_S),
    media=AuditRule("video.played", "video", "pk", every_s=HOUR_S),
    clip=AuditRule("video.clip_downloaded", "video", "pk", every_s=MINUTE_S),
    request_clip=AuditRule("video.clip_requested", "video", "pk"),
)
class VideoViewSet(ItemViewSet):
    """Videos, their frame tables and what a browser plays of them."""

    serializer_class = VideoSerializer
    filterset_class = VideoFilter
    queryset = Video.objects.none()
    kinds = ("video",)

    def get_queryset(self) -> QuerySet[Video]:
        """Restrict to videos visible to the user; shared ones appear only in the list of one
        case."""
        return video_list(user=user_of(self.request), with_shared=self.with_shared())

    def with_shared(self) -> bool:
        """Return whether videos of shared cases count: not for new clips, which are jobs."""
        return self.action != "request_clip" and super().with_shared()

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """A player asks for video/*; errors are problem+json anyway."""
        return super().perform_content_negotiation(
            request, force or self.action in {"media", "clip"}
        )

    @accepts_file(VideoAcceptedSerializer)
    def create(self, request: Request) -> Response:
        """Receive a video; 202 with the job that prepares it."""
        return super().create(request)

    @extend_schema(
        parameters=[
            OpenApiParameter("start", int, description="Index of the first frame; 0 by default"),
            OpenApiParameter("limit", int, description="1 to 5000; 1000 by default"),
        ],
        responses=FramePageSerializer,
        filters=False,
    )
    @action(detail=True, pagination_class=None, filterset_class=None)
    def frames(self, request: Request, pk: str) -> Response:
        """The frame table: index, PTS, time and key flag of each frame."""
        start = _integer_parameter(request, "start", default=0, low=0, high=2**31)
        limit = _integer_parameter(request, "limit", default=1000, low=1, high=MAX_FRAMES_PER_PAGE)
        page = frame_page(self.get_object(), start=start, limit=limit)
        after = start + len(page["frames"])
        has_more = page["count"] > after and page["frames"]
        url = request.build_absolute_uri()
        following = replace_query_param(url, "start", after) if has_more else None
        return Response({**page, "next": following})

    @extend_schema(
        responses={
            (200, "video/mp4"): OpenApiTypes.BINARY,
            (206, "video/mp4"): OpenApiTypes.BINARY,
            416: OpenApiResponse(description="The range contains no byte of the file"),
        },
        filters=False,
    )
    @action(detail=True, pagination_class=None, filterset_class=None)
    def media(self, request: Request, pk: str) -> HttpResponseBase:
        """Send the video for playback: the original or its h264 rendition. Supports byte ranges."""
        return media_response(request._request, self.get_object())

    @extend_schema(
        operation_id="videos_clip",
        parameters=[ClipSpanSerializer],
        responses={
            (200, "video/mp4"): OpenApiTypes.BINARY,
            (206, "video/mp4"): OpenApiTypes.BINARY,
        },
        filters=False,
    )
    @action(
        detail=True,
        pagination_class=None,
        filterset_class=None,
        parser_classes=(BoundedJsonParser,),
    )
    def clip(self, request: Request, pk: str) -> HttpResponseBase:
        """Download a span of frames as an MP4 that was ordered before; otherwise 404.

        It has exactly these frames, H.264, without sound. The first is at time 0; the others keep
        their distance from it. Its comment has index and time of the first frame in the video, as
        the result of the job. Supports byte ranges.
        """
        span = ClipSpanSerializer(data=request.query_params)
        span.is_valid(raise_exception=True)
        return clip_response(request._request, self.get_object(), **span.validated_data)

    @extend_schema(
        operation_id="videos_clip_request",
        request=ClipSpanSerializer,
        responses={202: OpenApiResponse(JobSerializer, "Being written")},
        filters=False,
    )
    @clip.mapping.post
    def request_clip(self, request: Request, pk: str) -> Response:
        """Submit the job that makes a clip; download it when the job has succeeded."""
        span = ClipSpanSerializer(data=request.data)
        span.is_valid(raise_exception=True)
        job = clip_request(video=self.get_object(), user=user_of(request), **span.validated_data)
        return job_accepted(job, request)


def _integer_parameter(request: Request, name: str, *, default: int, low: int, high: int) -> int:
    text = request.query_params.get(name, "").strip()
    if not text:
        return default
    value = int(text) if text.isdecimal() and len(text) < 12 else -1
    if not low <= value <= high:
        raise InvalidInputError(f"{name}: expected a whole number from {low} to {high}.")
    return value

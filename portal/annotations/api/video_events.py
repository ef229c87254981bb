"""``/api/v1/video-events/``."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from ml.types import JsonObject
from portal.annotations.api.versions import ETAG_HEADER, VersionedApi, stale_response
from portal.annotations.models import VideoEvent, VideoEventRevision
from portal.annotations.selectors.video_events import (
    video_event_get,
    video_event_names,
    video_event_revisions,
    video_events,
)
from portal.annotations.serializers import (
    INT32_MAX,
    DescriptionField,
    FrameOutSerializer,
    frame_represent,
)
from portal.annotations.services.video_events import (
    MAX_NAME_CHARS,
    VideoEventChanges,
    video_event_create,
    video_event_delete,
    video_event_restore,
    video_event_update,
)
from portal.archive.selectors.canvases import canvas_get
from portal.core.api.etags import (
    IF_MATCH_OPTIONAL,
    IF_MATCH_VERSION,
    version_expected,
    version_expected_or_none,
)
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, rejections
from portal.labs.requests import user_of

STALE = stale_response("event")


class VideoEventSerializer(serializers.Serializer[Any]):
    """An event of a video. ``version`` is its ETag."""

    id = serializers.UUIDField()
    canvas = serializers.UUIDField()
    name = serializers.CharField()
    note = serializers.CharField()
    first = FrameOutSerializer()
    last = FrameOutSerializer(help_text="The frame of `first` for a moment")
    version = serializers.IntegerField()
    created_by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    deleted_at = serializers.DateTimeField(allow_null=True)


class VideoEventPatchSerializer(serializers.Serializer[Any]):
    """Editable fields; omitted ones keep their values."""

    name = serializers.CharField(required=False, max_length=MAX_NAME_CHARS)
    note = DescriptionField(required=False)
    first_index = serializers.IntegerField(required=False, min_value=0, max_value=INT32_MAX)
    last_index = serializers.IntegerField(required=False, min_value=0, max_value=INT32_MAX)


class VideoEventCreateSerializer(VideoEventPatchSerializer):
    """Fields of a new event."""

    id = serializers.UUIDField(
        required=False, help_text="Chosen by the client, so that the same request can be sent again"
    )
    canvas = serializers.UUIDField()
    name = serializers.CharField(max_length=MAX_NAME_CHARS)
    first_index = serializers.IntegerField(min_value=0, max_value=INT32_MAX)
    last_index = serializers.IntegerField(
        required=False, min_value=0, max_value=INT32_MAX, help_text="Left out for a moment"
    )


class VideoEventQuerySerializer(serializers.Serializer[Any]):
    """Filters of the list of events."""

    canvas = serializers.UUIDField(required=False)
    name = serializers.CharField(required=False, max_length=MAX_NAME_CHARS)
    frame = serializers.IntegerField(
        required=False, min_value=0, max_value=INT32_MAX, help_text="Events that it is part of"
    )
    deleted = serializers.BooleanField(required=False, help_text="List the deleted ones instead")


class VideoEventNamesQuerySerializer(serializers.Serializer[Any]):
    """Query parameters: the canvas."""

    canvas = serializers.UUIDField()


class VideoEventNamesSerializer(serializers.Serializer[Any]):
    """Names to suggest, those that the lab uses most first."""

    names = serializers.ListField(child=serializers.CharField())


class VideoEventRevisionSerializer(serializers.ModelSerializer[VideoEventRevision]):
    """Revision of an event."""

    action = serializers.CharField()
    author = serializers.CharField(allow_null=True)

    class Meta:
        model = VideoEventRevision
        fields = (
            *("version", "action", "name", "note", "first_index", "last_index"),
            *("author", "created_at"),
        )


@audited(
    list=AuditRule("video_event.listed", "canvas", "?canvas", every_s=HOUR_S),
    names=None,
    create=rejections("video_event.saved"),
    retrieve=AuditRule("video_event.viewed", "video_event", "pk", every_s=MINUTE_S),
    partial_update=rejections("video_event.saved", "video_event", "pk"),
    destroy=rejections("video_event.deleted", "video_event", "pk"),
    restore=rejections("video_event.saved", "video_event", "pk"),
    revisions=AuditRule("video_event.viewed", "video_event", "pk", every_s=MINUTE_S),
)
class VideoEventApi(VersionedApi[VideoEvent]):
    """Events of a video without an outline: a moment, or a span of frames."""

    queryset = VideoEvent.objects.none()
    serializer_class = VideoEventSerializer

    def find(self, pk: uuid.UUID) -> VideoEvent:
        """An event, deleted or not."""
        return video_event_get(user_of(self.request), pk)

    def represent(self, row: VideoEvent, notes: Sequence[str]) -> JsonObject:
        """JSON of an event."""
        return video_event_represent(row)

    @extend_schema(
        parameters=[VideoEventQuerySerializer],
        responses=VideoEventSerializer(many=True),
        summary="List events of videos",
    )
    def list(self, request: Request) -> Response:
        """List live events, of a canvas or of all, by first frame."""
        query = VideoEventQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        data = query.validated_data
        user = user_of(request)
        rows: QuerySet[VideoEvent] = video_events(
            user,
            canvas_get(user=user, canvas_id=data["canvas"]) if "canvas" in data else None,
            name=data.get("name", ""),
            frame_index=data.get("frame"),
            deleted=data.get("deleted", False),
        )
        page = self.paginate_queryset(rows) or []
        return self.get_paginated_response([video_event_represent(event) for event in page])

    @extend_schema(
        parameters=[VideoEventNamesQuerySerializer],
        responses=VideoEventNamesSerializer,
        summary="Names to suggest for events",
    )
    @action(detail=False, methods=["get"], pagination_class=None)
    def names(self, request: Request) -> Response:
        """Names that the canvas' lab uses, the most frequent first, then common ones."""
        query = VideoEventNamesQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        user = user_of(request)
        canvas = canvas_get(user=user, canvas_id=query.validated_data["canvas"])
        return Response({"names": video_event_names(user, canvas.lab_id)})

    @extend_schema(
        request=VideoEventCreateSerializer,
        responses={
            201: OpenApiResponse(VideoEventSerializer, "Created"),
            200: OpenApiResponse(VideoEventSerializer, "This event was already there"),
        },
        parameters=[ETAG_HEADER],
        summary="Add an event to a video",
    )
    def create(self, request: Request) -> Response:
        """Create an event.

        A client that chooses ``id`` can repeat a request whose response was lost.
        """
        body = VideoEventCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = dict(body.validated_data)
        user = user_of(request)
        saved = video_event_create(
            canvas=canvas_get(user=user, canvas_id=data.pop("canvas")),
            user=user,
            event_id=data.pop("id", None),
            **data,
        )
        return self.creation(saved.event, created=saved.created)

    @extend_schema(responses=VideoEventSerializer, parameters=[ETAG_HEADER], summary="One event")
    def retrieve(self, request: Request, pk: str) -> Response:
        """Return the present version; of a deleted event the last one, with ``deleted_at``."""
        return self.answer(self.find(uuid.UUID(pk)))

    @extend_schema(
        request=VideoEventPatchSerializer,
        responses={200: VideoEventSerializer, 412: STALE},
        parameters=[IF_MATCH_VERSION, ETAG_HEADER],
        summary="Change an event",
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        """Save a new version of the event."""
        event = self.find(uuid.UUID(pk))
        version = version_expected(request)
        body = VideoEventPatchSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        changes: VideoEventChanges = {**body.validated_data}  # type: ignore[typeddict-item]
        user = user_of(request)
        with self.current_if_stale(event):
            video_event_update(event=event, user=user, expected_version=version, changes=changes)
        return self.answer(event)

    @extend_schema(
        responses={204: None, 412: STALE},
        parameters=[IF_MATCH_VERSION, ETAG_HEADER],
        summary="Delete an event",
    )
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete an event by a new version, which ``restore`` undoes."""
        event = self.find(uuid.UUID(pk))
        version = version_expected(request)
        with self.current_if_stale(event):
            video_event_delete(event=event, user=user_of(request), expected_version=version)
        return self.deletion(event)

    @extend_schema(
        request=None,
        responses={200: VideoEventSerializer, 412: STALE},
        parameters=[IF_MATCH_OPTIONAL, ETAG_HEADER],
        summary="Undo the deletion of an event",
    )
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, pk: str) -> Response:
        """Restore a deleted event as a new version; a live event is not changed."""
        event = self.find(uuid.UUID(pk))
        version = version_expected_or_none(request)
        with self.current_if_stale(event):
            video_event_restore(event=event, user=user_of(request), expected_version=version)
        return self.answer(event)

    @extend_schema(
        responses=VideoEventRevisionSerializer(many=True),
        summary="List the versions of an event",
    )
    @action(detail=True, methods=["get"])
    def revisions(self, request: Request, pk: str) -> Response:
        """Versions from first to last, with author and time."""
        event = self.find(uuid.UUID(pk))
        page: Any = self.paginate_queryset(video_event_revisions(event))  # type: ignore[arg-type]
        return self.get_paginated_response(VideoEventRevisionSerializer(page, many=True).data)


def video_event_represent(event: VideoEvent) -> JsonObject:
    """JSON of an event, as REST returns it."""
    video = getattr(event.canvas, "video", None)
    base_s = video.time_base_s if video else None
    return {
        "id": str(event.pk),
        "canvas": str(event.canvas_id),
        "name": event.name,
        "note": event.note,
        "first": frame_represent(event.first_index, event.first_pts, time_base_s=base_s),
        "last": frame_represent(event.last_index, event.last_pts, time_base_s=base_s),
        "version": event.version,
        "created_by": str(event.created_by) if event.created_by else None,
        "created_at": event.created_at.isoformat(),
        "updated_at": event.updated_at.isoformat(),
        "deleted_at": event.deleted_at.isoformat() if event.deleted_at else None,
    }

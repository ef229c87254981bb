"""``/api/v1/canvases/<id>/live/``: what others do on a canvas."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.api.rows import RoiRowsRenderer
from portal.annotations.serializers import FiniteField, RoiSerializer
from portal.archive.models import Canvas
from portal.archive.selectors.canvases import canvas_get
from portal.core.api.views import ApiView
from portal.core.http.audit_rules import HOUR_S, AuditRule, audited
from portal.labs.models import TokenArea
from portal.labs.requests import user_of
from portal.review.api.live_answers import (
    REPEAT_S,
    TaggedAnswer,
    change_text,
    included_rois,
    live_answer,
    person_text,
)
from portal.review.selectors.live import CanvasNow, canvas_now
from portal.review.services.presence import presence_end, presence_note


class LiveQuerySerializer(serializers.Serializer[Any]):
    """Cursor, and the requesting page."""

    since = serializers.DateTimeField(required=False, help_text="`cursor` of the last answer")
    tab = serializers.UUIDField(required=False, help_text="The page that asks")


class RoiChangedSerializer(serializers.Serializer[Any]):
    """An ROI that changed."""

    id = serializers.UUIDField()
    version = serializers.IntegerField()
    is_deleted = serializers.BooleanField()
    roi = RoiSerializer(
        allow_null=True, help_text="The ROI as it is now; null if it is large, or was sent before"
    )


class PersonSerializer(serializers.Serializer[Any]):
    """Another person who has the canvas open."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    initials = serializers.CharField()
    hue = serializers.IntegerField(help_text="0 to 7, the same on every page")
    view = serializers.ListField(
        child=serializers.FloatField(),
        min_length=4,
        max_length=4,
        allow_null=True,
        help_text="left, top, right, bottom",
    )
    roi = serializers.UUIDField(allow_null=True, help_text="The ROI that they have selected")


class CanvasNowSerializer(serializers.Serializer[Any]):
    """Others' activity on a canvas."""

    cursor = serializers.DateTimeField()
    changed = RoiChangedSerializer(many=True)
    has_more = serializers.BooleanField(
        help_text="More ROIs changed than are listed; read all of them"
    )
    people = PersonSerializer(many=True)
    video_events = serializers.IntegerField(
        help_text="Another number than before: events of the video changed; read them again"
    )


class PresenceSerializer(serializers.Serializer[Any]):
    """An open page."""

    tab = serializers.UUIDField(help_text="Chosen by the page")
    view = serializers.ListField(
        child=FiniteField(), min_length=4, max_length=4, required=False, allow_null=True
    )
    roi = serializers.UUIDField(required=False, allow_null=True)


@audited(GET=AuditRule("canvas.read", "canvas", "id", every_s=HOUR_S, only_tokens=True))
class CanvasLiveApi(ApiView):
    """Others' changes on a canvas, and who has it open."""

    area = TokenArea.ROIS
    has_own_tags = True
    renderer_classes = (RoiRowsRenderer,)

    @extend_schema(
        operation_id="canvases_live_retrieve",
        parameters=[
            LiveQuerySerializer,
            OpenApiParameter("If-None-Match", str, OpenApiParameter.HEADER),
        ],
        responses={200: CanvasNowSerializer, 304: OpenApiResponse(description="Nothing new")},
        summary="Show changes and open pages of others on a canvas",
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """Changes and open pages since a cursor; supports ETag and may be polled every second.

        Small ROIs are included with their change; `GET /rois/?canvas=&ids=` has the others.
        """
        query = LiveQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        data = query.validated_data
        canvas, since = _canvas(request, id), data.get("since", timezone.now())
        now = canvas_now(user_of(request), canvas, since=since, tab=data.get("tab"))
        answer = _live_answer(now, since)
        headers = {"ETag": answer.etag, "Cache-Control": "private, no-cache"}
        etag = request.headers.get("If-None-Match", "")
        if answer.is_known(etag, since=since, now=now.cursor):
            return Response(status=status.HTTP_304_NOT_MODIFIED, headers=headers)
        return Response(answer.text, headers=headers)

    @extend_schema(
        operation_id="canvases_live_update",
        request=PresenceSerializer,
        responses={204: None},
        summary="Report an open page",
    )
    def put(self, request: Request, id: uuid.UUID) -> Response:
        """Report an open page.

        Repeat it while the page is visible, and when its view or selected ROI changes.
        """
        canvas = _canvas(request, id)
        body = PresenceSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        presence_note(
            canvas=canvas,
            user=user_of(request),
            tab=data["tab"],
            view=data.get("view"),
            roi_id=data.get("roi"),
        )
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        operation_id="canvases_live_destroy",
        request=PresenceSerializer,
        responses={204: None},
        summary="Report a closed page",
    )
    def delete(self, request: Request, id: uuid.UUID) -> Response:
        """Report that a page was closed; others no longer see it."""
        canvas = _canvas(request, id)
        body = PresenceSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        presence_end(canvas=canvas, user=user_of(request), tab=body.validated_data["tab"])
        return Response(status=status.HTTP_204_NO_CONTENT)


def _live_answer(now: CanvasNow, since: datetime) -> TaggedAnswer:
    """Response with the ROIs that changed since the cursor; earlier ones were mostly sent."""
    after = since - timedelta(seconds=REPEAT_S)
    rois = included_rois([change for change in now.changed if change.changed_at > after])
    return live_answer(
        cursor=now.cursor,
        changes=(
            change_text(change, rois.get((change.id, change.version))) for change in now.changed
        ),
        people=map(person_text, now.people),
        has_more=now.has_more,
        video_events=now.video_events,
    )


def _canvas(request: Request, canvas_id: uuid.UUID) -> Canvas:
    return canvas_get(user=user_of(request), canvas_id=canvas_id)

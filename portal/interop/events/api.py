"""``/api/v1/events/``: server-sent events of jobs and ROIs."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from portal.archive.selectors.canvases import canvas_get
from portal.core.api.views import ApiView
from portal.core.errors import InvalidInputError
from portal.core.http.audit_rules import not_audited
from portal.core.models import Event
from portal.interop.events.selectors import STREAMED, EventFilter, event_latest, event_stretch
from portal.labs.models import ApiToken
from portal.labs.requests import user_of
from portal.webhooks.catalogue import message_of

AGAIN_MS, AT_ONCE_MS = 2000, 50
"""When a client comes back: after two seconds; at once where more waits."""
HIGHEST_ID = 2**63 - 1  # of the database's ids
MEDIA_TYPE = "text/event-stream"


class EventsQuerySerializer(serializers.Serializer[Any]):
    """Query parameters of the event stream."""

    types = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        help_text="Separated by commas; all if left out",
    )
    canvas = serializers.UUIDField(required=False, help_text="Only events that name this canvas")

    def validate_types(self, value: str) -> frozenset[str]:
        """Refuse unknown types."""
        names = frozenset(name.strip() for name in value.split(",") if name.strip())
        if unknown := sorted(names - STREAMED.keys()):
            raise serializers.ValidationError(
                f"{', '.join(unknown)[:100]}: unknown event; the events are {', '.join(STREAMED)}."
            )
        return names


@not_audited("ids and states without data of patients")
class EventsApi(ApiView):
    """Events since the last one a client received."""

    any_area = True

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """An event source asks for its own type; errors are problem+json."""
        return super().perform_content_negotiation(request, force=True)

    @extend_schema(
        operation_id="events",
        summary="Stream events as server-sent events",
        parameters=[
            EventsQuerySerializer,
            OpenApiParameter(
                "Last-Event-ID",
                str,
                OpenApiParameter.HEADER,
                description="Id of the last event received",
            ),
        ],
        responses={(200, MEDIA_TYPE): OpenApiTypes.STR},
    )
    def get(self, request: Request) -> HttpResponse:
        """Stream the events after `Last-Event-ID` and close the response; clients reconnect by
        themselves.

        Without an id, the stream starts with the next event. `retry` is the delay before
        reconnecting, the last `id` the place to continue from.
        """
        query = EventsQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        data, user = query.validated_data, user_of(request)
        canvas_id: uuid.UUID | None = data.get("canvas")
        if canvas_id is not None:
            canvas_get(user=user, canvas_id=canvas_id)
        after = _last_heard(request)
        if after is None:
            body = _position_message(event_latest(), has_more=False)
        else:
            token = request.auth if isinstance(request.auth, ApiToken) else None
            filters = EventFilter(data["types"], canvas_id, token)
            stretch = event_stretch(user, after, filters)
            messages = "".join(_message(event) for event in stretch.events)
            body = messages + _position_message(stretch.until, has_more=stretch.has_more)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return HttpResponse(body, content_type=f"{MEDIA_TYPE}; charset=utf-8", headers=headers)


def _last_heard(request: Request) -> int | None:
    header = request.headers.get("Last-Event-ID", "").strip()
    if not header:
        return None
    is_short = len(header) <= len(str(HIGHEST_ID)) and header.isascii() and header.isdecimal()
    if not is_short or int(header) > HIGHEST_ID:
        raise InvalidInputError("Last-Event-ID: expected the id of an event that was sent here.")
    return int(header)


def _message(event: Event) -> str:
    body = message_of(event.name, event.payload, lab_id=event.lab_id, at=event.created_at)
    return f"id: {event.pk}\nevent: {event.name}\ndata: {body}\n\n"


def _position_message(until: int, *, has_more: bool) -> str:
    """Server-sent message without data: the id to continue from, and when to reconnect."""
    return f"retry: {AT_ONCE_MS if has_more else AGAIN_MS}\nid: {until}\n\n"


urlpatterns = [path("events/", EventsApi.as_view(), name="events")]

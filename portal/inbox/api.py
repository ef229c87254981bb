"""``/api/v1/notifications/``: the user's inbox."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import QuerySet
from django.urls import path
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.api.views import ApiView, ApiViewSet
from portal.core.http.audit_rules import HOUR_S, AuditRule, audited, not_audited
from portal.core.mail import mail_works
from portal.inbox import selectors, services
from portal.inbox.models import Notification, NotificationKind, NotificationPreferences
from portal.inbox.serializers import (
    CountSerializer,
    NotificationSerializer,
    PreferencesSerializer,
    ReadRequestSerializer,
    UnreadSerializer,
)
from portal.labs.models import ApiToken
from portal.labs.requests import user_of


class NotificationFilter(filters.FilterSet):
    """Filters of the list of notifications."""

    kind = filters.ChoiceFilter(choices=NotificationKind.choices)
    lab = filters.UUIDFilter()
    is_unread = filters.BooleanFilter(field_name="read_at", lookup_expr="isnull")

    class Meta:
        model = Notification
        fields = ("kind", "lab", "is_unread")


@audited(
    list=AuditRule("inbox.viewed", every_s=HOUR_S),
    retrieve=AuditRule("inbox.viewed", every_s=HOUR_S),
    read=None,
    read_many=None,
    unread=None,
)
class NotificationViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiViewSet[Notification]
):
    """The user's own notifications of what they may still see."""

    any_area = True
    serializer_class = NotificationSerializer
    filterset_class = NotificationFilter
    queryset = Notification.objects.none()
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Notification]:
        """Newest first; for a token, only the kinds of its areas."""
        return selectors.notification_list(user_of(self.request), kinds=self._kinds())

    @extend_schema(request=None, responses=NotificationSerializer, summary="Mark as read")
    @action(detail=True, methods=["post"])
    def read(self, request: Request, pk: str) -> Response:
        """Mark a notification as read; one that is read already keeps its time."""
        row = self.get_object()
        services.notifications_read(self.get_queryset().filter(pk=row.pk))
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        operation_id="notifications_read_many",
        request=ReadRequestSerializer,
        responses=CountSerializer,
        summary="Mark several or all as read",
    )
    @action(
        detail=False,
        methods=["post"],
        url_path="read",
        url_name="read-many",
        filterset_class=None,
        pagination_class=None,
    )
    def read_many(self, request: Request) -> Response:
        """Mark notifications as read; returns the number that were unread."""
        body = ReadRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        ids: list[uuid.UUID] | None = body.validated_data.get("ids")
        rows = self.get_queryset()
        count = services.notifications_read(rows if ids is None else rows.filter(pk__in=ids))
        return Response(CountSerializer({"count": count}).data)

    @extend_schema(
        operation_id="notifications_unread",
        responses=UnreadSerializer,
        summary="Number of unread notifications",
    )
    @action(detail=False, methods=["get"], filterset_class=None, pagination_class=None)
    def unread(self, request: Request) -> Response:
        """Number of unread notifications; may be polled once a minute."""
        count = selectors.unread_count(user_of(request), kinds=self._kinds())
        return Response(UnreadSerializer({"count": count}).data)

    def _kinds(self) -> list[NotificationKind] | None:
        token = self.request.auth
        if not isinstance(token, ApiToken):
            return None
        writes = self.request.method not in SAFE_METHODS
        areas = selectors.AREAS.items()
        return [kind for kind, area in areas if token.allows(area, writes=writes)]


@not_audited("no data of patients")
class NotificationPreferencesApi(ApiView):
    """Read and change when the user receives notifications by mail."""

    any_area = True

    @extend_schema(
        operation_id="notification_preferences_retrieve",
        responses=PreferencesSerializer,
        summary="Show the notification preferences",
    )
    def get(self, request: Request) -> Response:
        """Preferences of the user; defaults if none are saved."""
        return _preferences(selectors.preferences_of(user_of(request)))

    @extend_schema(
        operation_id="notification_preferences_update",
        request=PreferencesSerializer,
        responses=PreferencesSerializer,
        summary="Set the notification preferences",
    )
    def put(self, request: Request) -> Response:
        """Save the preferences.

        They also apply to notifications of the last two days that were not mailed.
        """
        body = PreferencesSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        mail = body.validated_data["mail"]
        return _preferences(services.preferences_set(user=user_of(request), mail=mail))


def _preferences(row: NotificationPreferences) -> Response:
    body = {"mail": row.mail, "mail_works": mail_works()}
    return Response(PreferencesSerializer(body).data)


router_entries: list[tuple[str, Any, str]] = [
    ("notifications", NotificationViewSet, "notification")
]
urlpatterns = [
    path(
        "notification-preferences/",
        NotificationPreferencesApi.as_view(),
        name="notification-preferences",
    ),
]

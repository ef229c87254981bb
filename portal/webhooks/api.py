"""REST of webhooks, for managers."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from ml.types import JsonObject
from portal.core.api.etags import ETAG_MADE
from portal.core.api.views import ApiViewSet
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, rejections
from portal.labs.models import Role, TokenArea
from portal.labs.requests import UUID_REGEX, user_of
from portal.labs.selectors import lab_chosen
from portal.webhooks import selectors, services
from portal.webhooks.models import Webhook
from portal.webhooks.serializers import (
    DeliveryQuerySerializer,
    DeliverySerializer,
    ReplayedSerializer,
    ReplaySerializer,
    SecretSerializer,
    WebhookChangeSerializer,
    WebhookCreateSerializer,
    WebhookMadeSerializer,
    WebhookSerializer,
)

NO_STORE = {"Cache-Control": "no-store"}


@audited(
    list=AuditRule("webhook.viewed", every_s=HOUR_S),
    create=rejections("webhook.created"),
    retrieve=AuditRule("webhook.viewed", "webhook", "pk", every_s=MINUTE_S),
    partial_update=rejections("webhook.changed", "webhook", "pk"),
    destroy=rejections("webhook.deleted", "webhook", "pk"),
    deliveries=AuditRule("webhook.viewed", "webhook", "pk", every_s=MINUTE_S),
    ping=rejections("webhook.pinged", "webhook", "pk"),
    replay=rejections("webhook.replayed", "webhook", "pk"),
    replay_one=rejections("webhook.replayed", "webhook", "pk"),
    secret=rejections("webhook.secret_changed", "webhook", "pk"),
)
class WebhookViewSet(mixins.ListModelMixin, ApiViewSet[Webhook]):
    """Addresses of other systems that receive the lab's events."""

    area = TokenArea.LAB
    if_match: ClassVar = {"PATCH": True, "DELETE": False}
    serializer_class = WebhookSerializer
    queryset = Webhook.objects.none()
    lookup_value_regex = UUID_REGEX

    def get_queryset(self) -> QuerySet[Webhook]:
        """Webhooks of the labs that the user manages."""
        return selectors.webhook_list(user_of(self.request))

    @extend_schema(
        parameters=[ETAG_MADE],
        request=WebhookCreateSerializer,
        responses={201: WebhookMadeSerializer},
        summary="Create a webhook",
    )
    def create(self, request: Request) -> Response:
        """Create a webhook. Only this response contains the `secret`."""
        serializer = WebhookCreateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data, user = dict(serializer.validated_data), user_of(request)
        lab = lab_chosen(user, data.pop("lab", None), at_least=Role.MANAGER)
        hook, secret = services.webhook_create(lab=lab, user=user, **data)
        body = self.representation(self.register_created(hook)) | {"secret": secret}
        return Response(body, status=status.HTTP_201_CREATED, headers=NO_STORE)

    @extend_schema(summary="A webhook")
    def retrieve(self, request: Request, pk: str) -> Response:
        """A webhook with the numbers of waiting and failed deliveries."""
        return Response(self.representation(self.register(self._hook(request, pk))))

    @extend_schema(
        request=WebhookChangeSerializer, responses=WebhookSerializer, summary="Change a webhook"
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a webhook. Setting `is_on` to false fails its waiting deliveries."""
        hook = self.register(self._hook(request, pk))
        serializer = WebhookChangeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        services.webhook_update(hook=hook, user=user_of(request), **serializer.validated_data)
        return Response(self.representation(hook))

    @extend_schema(responses={204: None}, summary="Delete a webhook")
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete a webhook with its log."""
        services.webhook_delete(hook=self.register(self._hook(request, pk)), user=user_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=None, responses=SecretSerializer, summary="Change the secret")
    @action(detail=True, methods=["post"])
    def secret(self, request: Request, pk: str) -> Response:
        """Create a new secret. For 24 hours the previous one signs messages as well."""
        changed = services.webhook_secret_change(
            hook=self._hook(request, pk), user=user_of(request)
        )
        return Response({"secret": changed}, headers=NO_STORE)

    @extend_schema(request=None, responses={202: DeliverySerializer}, summary="Send a test message")
    @action(detail=True, methods=["post"])
    def ping(self, request: Request, pk: str) -> Response:
        """Send a message of the type `webhook.ping`; the delivery has the result."""
        delivery = services.webhook_ping(hook=self._hook(request, pk), user=user_of(request))
        return Response(DeliverySerializer(delivery).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(
        parameters=[DeliveryQuerySerializer],
        responses=DeliverySerializer(many=True),
        summary="List the deliveries of a webhook",
    )
    @action(detail=True, methods=["get"])
    def deliveries(self, request: Request, pk: str) -> Response:
        """Deliveries with every attempt, newest first. Ended ones are kept for 30 days."""
        query = DeliveryQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        rows = selectors.deliveries_of(self._hook(request, pk), **query.validated_data)
        page: Any = self.paginate_queryset(rows)  # type: ignore[arg-type]
        return self.get_paginated_response(DeliverySerializer(page, many=True).data)

    @extend_schema(
        request=None, responses={202: DeliverySerializer}, summary="Send a delivery again"
    )
    @action(
        detail=True,
        methods=["post"],
        url_path=f"deliveries/(?P<delivery_id>{UUID_REGEX})/replay",
        url_name="replay-one",
    )
    def replay_one(self, request: Request, pk: str, delivery_id: str) -> Response:
        """Send a delivery again under the same `webhook-id`; 409 if it is waiting."""
        hook = self._hook(request, pk)
        delivery = selectors.delivery_get(hook, delivery_id=uuid.UUID(delivery_id))
        replayed = services.delivery_replay(delivery=delivery, user=user_of(request))
        return Response(DeliverySerializer(replayed).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(
        request=ReplaySerializer,
        responses={202: ReplayedSerializer},
        summary="Send all failed deliveries again",
    )
    @action(detail=True, methods=["post"])
    def replay(self, request: Request, pk: str) -> Response:
        """Send all failed deliveries again, each under its `webhook-id`."""
        hook = self._hook(request, pk)
        serializer = ReplaySerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        count = services.deliveries_replay(
            hook=hook, user=user_of(request), **serializer.validated_data
        )
        return Response({"count": count}, status=status.HTTP_202_ACCEPTED)

    def _hook(self, request: Request, pk: str) -> Webhook:
        return selectors.webhook_get(user_of(request), webhook_id=uuid.UUID(pk))

    def representation(self, row: Webhook) -> JsonObject:
        """Representation with counts of deliveries."""
        hook = selectors.webhook_get(user_of(self.request), webhook_id=row.pk)
        return dict(WebhookSerializer(hook).data)


router_entries: list[tuple[str, Any, str]] = [("webhooks", WebhookViewSet, "webhook")]

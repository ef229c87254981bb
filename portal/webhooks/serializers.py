"""Serializers of webhooks."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.webhooks.catalogue import TYPES
from portal.webhooks.models import (
    MAX_URL_CHARS,
    DeliveryState,
    Webhook,
    WebhookAttempt,
    WebhookDelivery,
    WebhookState,
)

TYPE_CHOICES = tuple((name, kind.title) for name, kind in TYPES.items())


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    """A webhook, without its secret."""

    lab = serializers.UUIDField(source="lab_id", read_only=True)
    types = serializers.ListField(
        child=serializers.ChoiceField(choices=TYPE_CHOICES), help_text="Empty for all"
    )
    state = serializers.ChoiceField(choices=WebhookState.choices)
    waiting = serializers.IntegerField(help_text="Deliveries still to be made")
    failed = serializers.IntegerField(help_text="Deliveries that failed")
    delivered_at = serializers.DateTimeField(
        allow_null=True, help_text="When the last delivery succeeded"
    )

    class Meta:
        model = Webhook
        fields: tuple[str, ...] = (
            "id",
            "lab",
            "name",
            "url",
            "types",
            "state",
            "failing_since",
            "waiting",
            "failed",
            "delivered_at",
            "created_at",
        )


class SecretSerializer(serializers.Serializer[Any]):
    """A secret, shown only once."""

    secret = serializers.CharField(help_text="`whsec_...`, as Standard Webhooks defines it")


class WebhookMadeSerializer(WebhookSerializer):
    """A webhook with its secret, which is shown only once."""

    secret = serializers.CharField(help_text="`whsec_...`, as Standard Webhooks defines it")

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")


class WebhookChangeSerializer(serializers.Serializer[Any]):
    """Fields of a webhook that can be changed."""

    name = serializers.CharField(max_length=80, required=False)
    url = serializers.CharField(max_length=MAX_URL_CHARS, required=False)
    types = serializers.ListField(
        child=serializers.ChoiceField(choices=TYPE_CHOICES),
        required=False,
        help_text="Names of events; empty for all",
    )
    is_on = serializers.BooleanField(required=False)


class WebhookCreateSerializer(serializers.Serializer[Any]):
    """A new webhook."""

    lab = serializers.UUIDField(
        required=False, help_text="May be left out by managers of a single lab"
    )
    name = serializers.CharField(max_length=80)
    url = serializers.CharField(max_length=MAX_URL_CHARS)
    types = serializers.ListField(
        child=serializers.ChoiceField(choices=TYPE_CHOICES),
        required=False,
        default=list,
        help_text="Names of events; empty for all",
    )


class AttemptSerializer(serializers.ModelSerializer[WebhookAttempt]):
    """A request and its result."""

    class Meta:
        model = WebhookAttempt
        fields = ("at", "status", "error", "answer", "seconds")


class DeliverySerializer(serializers.ModelSerializer[WebhookDelivery]):
    """A message with all attempts."""

    message_id = serializers.CharField(help_text="`webhook-id`, the same in every attempt")
    state = serializers.ChoiceField(choices=DeliveryState.choices)
    attempts = AttemptSerializer(many=True)

    class Meta:
        model = WebhookDelivery
        fields = ("id", "message_id", "type", "state", "created_at", "due_at", "body", "attempts")


class DeliveryQuerySerializer(serializers.Serializer[Any]):
    """Query parameters of the log."""

    state = serializers.ChoiceField(choices=DeliveryState.choices, required=False)


class ReplaySerializer(serializers.Serializer[Any]):
    """Deliveries to send again."""

    since = serializers.DateTimeField(
        required=False, help_text="Only what failed from then on; all of it if left out"
    )


class ReplayedSerializer(serializers.Serializer[Any]):
    """Number of deliveries that wait again."""

    count = serializers.IntegerField()

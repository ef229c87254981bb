"""Webhooks as the API shows them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.hooks.catalogue import TYPES
from portal.hooks.models import (
    URL_MAX,
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
    """Shown this once."""

    secret = serializers.CharField(help_text="`whsec_...`, as Standard Webhooks defines it")


class WebhookMadeSerializer(WebhookSerializer):
    """With its secret, shown this once."""

    secret = serializers.CharField(help_text="`whsec_...`, as Standard Webhooks defines it")

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")


class WebhookChangeSerializer(serializers.Serializer[Any]):
    """What of a webhook can be changed."""

    name = serializers.CharField(max_length=80, required=False)
    url = serializers.CharField(max_length=URL_MAX, required=False)
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
    url = serializers.CharField(max_length=URL_MAX)
    types = serializers.ListField(
        child=serializers.ChoiceField(choices=TYPE_CHOICES),
        required=False,
        default=list,
        help_text="Names of events; empty for all",
    )


class AttemptSerializer(serializers.ModelSerializer[WebhookAttempt]):
    """One request and what came of it."""

    class Meta:
        model = WebhookAttempt
        fields = ("at", "status", "error", "answer", "seconds")


class DeliverySerializer(serializers.ModelSerializer[WebhookDelivery]):
    """One message, with every attempt at it."""

    message_id = serializers.CharField(help_text="`webhook-id`, the same in every attempt")
    state = serializers.ChoiceField(choices=DeliveryState.choices)
    attempts = AttemptSerializer(many=True)

    class Meta:
        model = WebhookDelivery
        fields = ("id", "message_id", "type", "state", "created_at", "due_at", "body", "attempts")


class DeliveryQuerySerializer(serializers.Serializer[Any]):
    """Which of the log."""

    state = serializers.ChoiceField(choices=DeliveryState.choices, required=False)


class ReplaySerializer(serializers.Serializer[Any]):
    """What to send again."""

    since = serializers.DateTimeField(
        required=False, help_text="Only what failed from then on; all of it if left out"
    )


class ReplayedSerializer(serializers.Serializer[Any]):
    """How many wait again."""

    count = serializers.IntegerField()

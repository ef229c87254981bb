"""Webhooks, the messages to send, and each attempt.

One job at a time sends the due messages of a webhook; its lease allows it to record attempts.

::

    waiting --2xx--> delivered
      ^  |--attempts spent, or 410--> failed
      |--any other response, or none: later
    delivered, failed --replay--> waiting
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone

from portal.core import ciphers
from portal.labs.models import LabOwned

MAX_URL_CHARS = 500
MAX_ANSWER_CHARS = 500  # stored characters of a response
PURPOSE = "tessera webhook"


class WebhookState(models.TextChoices):
    """State of a webhook: active, or the reason why it receives no messages."""

    ON = "on", "On"
    OFF = "off", "Switched off"
    GONE = "gone", "Switched off: the receiver answered that it is gone"
    FAILING = "failing", "Switched off: it failed for days"


class DeliveryState(models.TextChoices):
    """See the diagram above."""

    WAITING = "waiting", "Waiting"
    DELIVERED = "delivered", "Delivered"
    FAILED = "failed", "Failed"


class Webhook(LabOwned):
    """An address of another system that receives the lab's events."""

    edited = (
        "name",
        "url",
        "types",
        "state",
    )

    name = models.CharField(max_length=80)
    url = models.CharField(max_length=MAX_URL_CHARS)
    types = models.JSONField(default=list, help_text="Names of events; empty for all")
    state = models.CharField(max_length=8, choices=WebhookState.choices, default=WebhookState.ON)
    sealed_secret = models.TextField()
    sealed_secret_before = models.TextField(blank=True)
    before_until = models.DateTimeField(
        null=True, help_text="Until then the previous secret signs too"
    )
    failing_since = models.DateTimeField(
        null=True, help_text="First failure since the last success"
    )
    last_sent_at = models.DateTimeField(
        null=True, help_text="Last attempt of any message; the webhook served longest ago is next"
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ("name", "id")

    def __str__(self) -> str:
        return self.name

    @property
    def is_on(self) -> bool:
        """Return whether the webhook receives messages."""
        return self.state == WebhookState.ON

    @property
    def secrets(self) -> list[str]:
        """Secrets that sign messages, the present one first."""
        sealed = [self.sealed_secret]
        if self.before_until and self.before_until > timezone.now():
            sealed.append(self.sealed_secret_before)
        return [ciphers.decrypt(sealed_secret, purpose=PURPOSE) for sealed_secret in sealed]


class WebhookDelivery(LabOwned):
    """A message to a webhook. ``webhook-id`` is its id, the same in every attempt."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event_id = models.BigIntegerField(null=True, help_text="Event in the outbox; empty for a ping")
    type = models.CharField(max_length=80)
    body = models.TextField(
        help_text="The bytes that are signed and sent, the same in each attempt"
    )
    state = models.CharField(
        max_length=9, choices=DeliveryState.choices, default=DeliveryState.WAITING
    )
    tries = models.PositiveSmallIntegerField(default=0, help_text="Attempts since it began to wait")
    due_at = models.DateTimeField()

    class Meta:
        ordering = ("-created_at", "id")
        constraints = (
            models.UniqueConstraint(fields=["webhook", "event_id"], name="delivery_once"),
        )
        indexes = (
            models.Index(fields=["webhook", "-created_at"], name="delivery_log"),
            models.Index(
                fields=["webhook", "due_at"],
                condition=models.Q(state="waiting"),
                name="delivery_due",
            ),
        )

    @property
    def tried(self) -> list[WebhookAttempt]:
        """Attempts, first to last."""
        return list(self.attempts.all())

    @property
    def message_id(self) -> str:
        """Value of the header ``webhook-id``."""
        return f"msg_{self.pk.hex}"


class WebhookAttempt(models.Model):
    """Result of a request."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    delivery = models.ForeignKey(WebhookDelivery, on_delete=models.CASCADE, related_name="attempts")
    at = models.DateTimeField()
    status = models.PositiveSmallIntegerField(
        null=True, help_text="HTTP status; empty if there was no answer"
    )
    error = models.CharField(max_length=200, blank=True)
    answer = models.CharField(
        max_length=MAX_ANSWER_CHARS, blank=True, help_text="The beginning of the answer"
    )
    seconds = models.FloatField()

    class Meta:
        ordering = ("at", "id")

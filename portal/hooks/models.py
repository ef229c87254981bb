"""Webhooks: who is notified of what, the messages to send, and each attempt.

A delivery moves as a job does: only an UPDATE guarded by state and lease moves the row.

::

    waiting --2xx--> delivered
      ^  |--attempts spent, or 410--> failed
      |--any other answer, or none: later; or the sender fell silent: its lease ends
    delivered, failed --replay--> waiting
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone

from portal.core import ciphers
from portal.labs.models import LabOwned

URL_MAX = 500  # characters; what servers and logs take
ANSWER_MAX = 500  # characters of an answer that are kept: an error message, not a page
PURPOSE = "tessera webhook"


class WebhookState(models.TextChoices):
    """Whether a webhook receives messages, and why not."""

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
    """An address of another system that is notified of what happens in the lab."""

    edited = (
        "name",
        "url",
        "types",
        "state",
    )

    name = models.CharField(max_length=80)
    url = models.CharField(max_length=URL_MAX)
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
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ("name", "id")

    def __str__(self) -> str:
        return self.name

    @property
    def is_on(self) -> bool:
        """Whether it is told anything."""
        return self.state == WebhookState.ON

    @property
    def secrets(self) -> list[str]:
        """The secrets that sign now, the present one first."""
        sealed = [self.sealed_secret]
        if self.before_until and self.before_until > timezone.now():
            sealed.append(self.sealed_secret_before)
        return [ciphers.decrypt(one, purpose=PURPOSE) for one in sealed]


class WebhookDelivery(LabOwned):
    """One message to one webhook. ``webhook-id`` is its id: the same in every attempt."""

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
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-created_at", "id")
        constraints = (
            models.UniqueConstraint(fields=["webhook", "event_id"], name="delivery_once"),
        )
        indexes = (
            models.Index(fields=["webhook", "-created_at"], name="delivery_log"),
            models.Index(
                fields=["due_at"], condition=models.Q(state="waiting"), name="delivery_due"
            ),
        )

    @property
    def tried(self) -> list[WebhookAttempt]:
        """The attempts, first to last."""
        return list(self.attempts.all())

    @property
    def message_id(self) -> str:
        """What the receiver knows it by."""
        return f"msg_{self.pk.hex}"


class WebhookAttempt(models.Model):
    """What came of one request."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    delivery = models.ForeignKey(WebhookDelivery, on_delete=models.CASCADE, related_name="attempts")
    at = models.DateTimeField()
    status = models.PositiveSmallIntegerField(
        null=True, help_text="HTTP status; empty if there was no answer"
    )
    error = models.CharField(max_length=200, blank=True)
    answer = models.CharField(
        max_length=ANSWER_MAX, blank=True, help_text="The beginning of the answer"
    )
    seconds = models.FloatField()

    class Meta:
        ordering = ("at", "id")

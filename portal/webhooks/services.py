"""Writes: webhooks, their secrets, test messages and replays; for managers of the lab."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from portal.core import ciphers
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.labs.models import Lab, User
from portal.labs.rules import require_manager
from portal.webhooks.catalogue import PING, TYPES, ping_of
from portal.webhooks.models import PURPOSE, DeliveryState, Webhook, WebhookDelivery, WebhookState
from portal.webhooks.sending import waiting_give_up
from portal.webhooks.signing import secret_new
from portal.webhooks.transport import url_check

MAX_WEBHOOKS_PER_LAB = 20  # webhooks of a lab: each may receive every event
BEFORE_FOR = timedelta(hours=24)  # during which the previous secret signs as well


def webhook_create(
    *, lab: Lab, user: User, name: str, url: str, types: Iterable[str] = ()
) -> tuple[Webhook, str]:
    """Create a webhook; return it and its secret, which is shown only once.

    Emits ``webhook.created``.

    Raises:
        ForbiddenError: ``user`` does not manage the lab.
        InvalidInputError: invalid name, address or type.
        ConflictError: the lab has the maximum number of webhooks.
    """
    require_manager(user, lab)
    secret = secret_new()
    hook = Webhook(lab=lab, created_by=user, sealed_secret=_encrypt_secret(secret))
    _set(hook, name=name, url=url, types=types)
    with transaction.atomic():
        Lab.objects.select_for_update().get(pk=lab.pk)  # concurrent calls must count each other
        if Webhook.objects.filter(lab=lab).count() >= MAX_WEBHOOKS_PER_LAB:
            raise ConflictError(
                f"A lab can have up to {MAX_WEBHOOKS_PER_LAB} webhooks.", code="too-many"
            )
        hook.save(force_insert=True)
        _emit("webhook.created", hook, user)
    return hook, secret


def webhook_update(*, hook: Webhook, user: User, **values: Any) -> Webhook:
    """Change name, URL or types; ``is_on`` switches it on or off.

    Failed messages wait for a replay.

    Emits ``webhook.changed``.
    """
    require_manager(user, hook.lab)
    is_on = values.pop("is_on", hook.is_on)
    _set(hook, **values)
    with transaction.atomic():
        if is_on != hook.is_on:
            hook.state = WebhookState.ON if is_on else WebhookState.OFF
            hook.failing_since = None
            if not is_on:
                waiting_give_up(hook)
        written = ("name", "url", "types", "state", "failing_since", "updated_at")
        hook.save(update_fields=written)  # not the secret: another request may have changed it
        _emit("webhook.changed", hook, user)
    return hook


def webhook_delete(*, hook: Webhook, user: User) -> None:
    """Delete a webhook with its log. Emits ``webhook.deleted``."""
    require_manager(user, hook.lab)
    with transaction.atomic():
        _emit("webhook.deleted", hook, user)
        hook.delete()


def webhook_secret_change(*, hook: Webhook, user: User) -> str:
    """Replace the secret, which is shown only once; for a day the previous one signs as well.

    Emits ``webhook.secret_changed``.
    """
    require_manager(user, hook.lab)
    secret = secret_new()
    with transaction.atomic():
        hook.sealed_secret_before, hook.sealed_secret = hook.sealed_secret, _encrypt_secret(secret)
        hook.before_until = timezone.now() + BEFORE_FOR
        written = ("sealed_secret_before", "sealed_secret", "before_until", "updated_at")
        hook.save(update_fields=written)
        _emit("webhook.secret_changed", hook, user)
    return secret


def webhook_ping(*, hook: Webhook, user: User) -> WebhookDelivery:
    """Send a test message like any other message. Emits ``webhook.pinged``.

    Raises:
        ConflictError: the webhook is switched off.
    """
    require_manager(user, hook.lab)
    _require_on(hook)
    now = timezone.now()
    body = ping_of(hook.pk, lab_id=hook.lab_id, at=now)
    with transaction.atomic():
        delivery = WebhookDelivery.objects.create(
            lab_id=hook.lab_id, webhook=hook, type=PING, body=body, due_at=now
        )
        _emit("webhook.pinged", hook, user)
    return delivery


def delivery_replay(*, delivery: WebhookDelivery, user: User) -> WebhookDelivery:
    """Send a delivery again under the same id; earlier attempts stay. Emits ``webhook.replayed``.

    Raises:
        ConflictError: it is waiting already, or its webhook is switched off.
    """
    hook = delivery.webhook
    require_manager(user, hook.lab)
    _require_on(hook)
    ended = WebhookDelivery.objects.filter(pk=delivery.pk).exclude(state=DeliveryState.WAITING)
    if not _send_again(ended, hook, user):
        raise ConflictError("This delivery is already waiting to be sent.", code="delivery-waiting")
    delivery.refresh_from_db()
    return delivery


def deliveries_replay(*, hook: Webhook, user: User, since: datetime | None = None) -> int:
    """Send all failed deliveries again, since a time; return their number.

    Emits ``webhook.replayed``.

    Raises:
        ConflictError: the webhook is switched off.

    """
    require_manager(user, hook.lab)
    _require_on(hook)
    deliveries = WebhookDelivery.objects.filter(webhook=hook, state=DeliveryState.FAILED)
    return _send_again(
        deliveries.filter(created_at__gte=since) if since else deliveries, hook, user
    )


def _send_again(rows: Any, hook: Webhook, user: User) -> int:
    with transaction.atomic():
        count: int = rows.update(
            state=DeliveryState.WAITING,
            tries=0,
            due_at=Now(),
            updated_at=timezone.now(),
        )
        if count:
            _emit("webhook.replayed", hook, user)
    return count


def _set(
    hook: Webhook,
    *,
    name: str | None = None,
    url: str | None = None,
    types: Iterable[str] | None = None,
) -> None:
    if name is not None:
        hook.name = name.strip()
        if not 1 <= len(hook.name) <= 80:
            raise InvalidInputError("name: 1 to 80 characters.")
    if url is not None:
        url_check(url)
        hook.url = url
    if types is not None:
        hook.types = sorted(set(types))
        if unknown := [event_type for event_type in hook.types if event_type not in TYPES]:
            raise InvalidInputError(f"types: there is no event {unknown[0]!r}.")


def _require_on(hook: Webhook) -> None:
    if not hook.is_on:
        raise ConflictError("This webhook is switched off.", code="webhook-off")


def _encrypt_secret(secret: str) -> str:
    return ciphers.encrypt(secret, purpose=PURPOSE)


def _emit(name: str, hook: Webhook, user: User) -> None:
    payload = {"webhook_id": str(hook.pk), "by": str(user.pk)}
    event_emit(name, lab_id=hook.lab_id, payload=payload)

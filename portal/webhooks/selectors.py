"""Reads: webhooks of the labs a user manages, and their log."""

from __future__ import annotations

import uuid

from django.db.models import Count, Max, Prefetch, Q, QuerySet

from portal.core.errors import NotFoundError
from portal.labs.models import Lab, Role, User
from portal.labs.rules import require_role
from portal.labs.selectors import labs_with_role
from portal.webhooks.models import DeliveryState, Webhook, WebhookAttempt, WebhookDelivery


def webhook_list(user: User) -> QuerySet[Webhook]:
    """Webhooks of the labs that the user manages, by name, with numbers of waiting and failed
    messages."""
    managed = labs_with_role(user, at_least=Role.MANAGER)
    return _annotate_counts(Webhook.objects.owned_by(user).filter(lab__in=managed)).order_by(
        "name", "id"
    )


def webhooks_of(lab: Lab) -> QuerySet[Webhook]:
    """Webhooks of a lab. Call for its managers."""
    return _annotate_counts(Webhook.objects.filter(lab=lab)).order_by("name", "id")


def _annotate_counts(rows: QuerySet[Webhook]) -> QuerySet[Webhook]:
    waiting, failed = (
        Count("deliveries", filter=Q(deliveries__state=state))
        for state in (DeliveryState.WAITING, DeliveryState.FAILED)
    )
    last = Max("deliveries__updated_at", filter=Q(deliveries__state=DeliveryState.DELIVERED))
    return rows.select_related("lab").annotate(waiting=waiting, failed=failed, delivered_at=last)


def webhook_get(user: User, *, webhook_id: uuid.UUID) -> Webhook:
    """Webhook of one of the user's labs, for its managers.

    Raises:
        NotFoundError: there is none.
        ForbiddenError: the user does not manage the lab.
    """
    hook = _annotate_counts(Webhook.objects.owned_by(user)).filter(pk=webhook_id).first()
    if hook is None:
        raise NotFoundError("There is no such webhook in your labs.")
    require_role(user, hook.lab_id, at_least=Role.MANAGER)
    return hook


def deliveries_of(hook: Webhook, *, state: str | None = None) -> QuerySet[WebhookDelivery]:
    """Log of a webhook, newest first, with all attempts."""
    rows = WebhookDelivery.objects.filter(webhook=hook)
    rows = rows.filter(state=state) if state else rows
    attempts = Prefetch("attempts", queryset=WebhookAttempt.objects.order_by("at", "id"))
    return rows.prefetch_related(attempts).order_by("-created_at", "id")


def delivery_get(hook: Webhook, *, delivery_id: uuid.UUID) -> WebhookDelivery:
    """Entry of the log.

    Raises:
        NotFoundError: it does not exist, or was pruned.
    """
    delivery = deliveries_of(hook).filter(pk=delivery_id).first()
    if delivery is None:
        raise NotFoundError("This webhook has no such delivery.")
    return delivery

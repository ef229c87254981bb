"""From the outbox to deliveries, and every move of a delivery.

Events are swept in the transaction that writes their deliveries, so each becomes one delivery for
each webhook that it concerns. A delivery is claimed by a lease: a sender that was killed leaves it
to the next, and the message keeps its id, so that the receiver knows a second copy. Leases go by
the database's clock.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from portal.core.database.locks import transaction_lock
from portal.core.events import event_emit
from portal.core.models import Event
from portal.hooks.catalogue import message_of
from portal.hooks.models import (
    DeliveryState,
    Webhook,
    WebhookAttempt,
    WebhookDelivery,
    WebhookState,
)
from portal.hooks.reaching import Answer
from portal.reading.blinding import events_unseen

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SCHEDULE: Sequence[timedelta] = (
    timedelta(seconds=5),
    5 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
    14 * HOUR,
    20 * HOUR,
    20.5 * HOUR,
)
"""Pauses after each failure; the last attempt comes three days after the first."""
JITTER = 0.1  # of a pause, either way: what failed together does not come back together
FAILING_FOR = timedelta(
    days=3
)  # as long as the schedule: a webhook that only failed is switched off
LEASE = timedelta(seconds=90)  # a request ends after 15 s, and looking up a name may take 30 more
SWEEP_AT_ONCE = 500  # events in a transaction: SQLite's other writers wait for it
AT_ONCE_EACH = 4  # requests to one webhook: a receiver that hangs keeps no other waiting
KEPT = timedelta(days=30)  # as long as things lie in the bin by default
PRUNE_AT_ONCE = 5000  # rows in a transaction


@dataclass(frozen=True, slots=True)
class Ended:
    """A webhook that was switched off because of its receiver."""

    webhook_id: uuid.UUID
    state: WebhookState


def sweep() -> int:
    """Make deliveries of what waits in the outbox. Returns how many events were swept."""
    if not Event.objects.filter(is_waiting=True).exists():
        return 0
    with transaction.atomic():
        transaction_lock("hooks:sweep")
        events = list(Event.objects.filter(is_waiting=True).order_by("id")[:SWEEP_AT_ONCE])
        labs = {event.lab_id for event in events if event.lab_id}
        hooks = list(Webhook.objects.filter(lab_id__in=labs, state=WebhookState.ON))
        if hooks:
            unseen = events_unseen(events)
            told = [event for event in events if event.pk not in unseen]
            rows = [
                _delivery(hook, event) for event in told for hook in hooks if _concerns(hook, event)
            ]
            WebhookDelivery.objects.bulk_create(rows, ignore_conflicts=True)
        Event.objects.filter(pk__in=[event.pk for event in events]).update(is_waiting=False)
    return len(events)


def _concerns(hook: Webhook, event: Event) -> bool:
    """Of its lab and its types, and not from before it was made."""
    is_its = hook.lab_id == event.lab_id and event.created_at >= hook.created_at
    return is_its and (not hook.types or event.name in hook.types)


def _delivery(hook: Webhook, event: Event) -> WebhookDelivery:
    body = message_of(event.name, event.payload, lab_id=event.lab_id, at=event.created_at)
    return WebhookDelivery(
        lab_id=hook.lab_id,
        webhook=hook,
        event_id=event.pk,
        type=event.name,
        body=body,
        due_at=Now(),
    )


def claim(room: int, *, busy: Mapping[uuid.UUID, int] | None = None) -> list[WebhookDelivery]:
    """Take deliveries that are due, a few for each webhook.

    Args:
        busy: requests of this sender that are under way, by webhook.
    """
    if room <= 0 or not _due().exists():
        return []
    token = uuid.uuid4()
    with transaction.atomic():
        transaction_lock("hooks:claim")
        _due().filter(pk__in=_chosen(room, Counter(busy or {}))).update(
            lease_token=token, lease_until=Now() + LEASE, tries=F("tries") + 1
        )
    taken = WebhookDelivery.objects.filter(lease_token=token).select_related("webhook")
    return list(taken.order_by("due_at"))


def _chosen(room: int, under_way: Counter[uuid.UUID]) -> list[uuid.UUID]:
    chosen: list[uuid.UUID] = []
    while len(chosen) < room:
        full = [hook for hook, count in under_way.items() if count >= AT_ONCE_EACH]
        due = _due().exclude(webhook_id__in=full).exclude(pk__in=chosen)
        found = due.order_by("due_at").values_list("pk", "webhook_id")[: room - len(chosen)]
        before = len(chosen)
        for pk, hook_id in found:
            if under_way[hook_id] < AT_ONCE_EACH:
                under_way[hook_id] += 1
                chosen.append(pk)
        if len(chosen) == before:
            break
    return chosen


def _due() -> Any:
    free = Q(lease_until=None) | Q(lease_until__lt=Now())
    waiting = WebhookDelivery.objects.filter(free, state=DeliveryState.WAITING, due_at__lte=Now())
    return waiting.filter(webhook__state=WebhookState.ON)


def record(
    results: Sequence[tuple[WebhookDelivery, Answer]], *, schedule: Sequence[timedelta] = SCHEDULE
) -> list[Ended]:
    """Write what came of requests, in one transaction. Returns the webhooks that this ended."""
    with transaction.atomic():
        WebhookAttempt.objects.bulk_create(
            WebhookAttempt(
                delivery=delivery,
                at=timezone.now() - timedelta(seconds=answer.seconds),
                status=answer.status,
                error=answer.error[:200],
                answer=answer.text,
                seconds=answer.seconds,
            )
            for delivery, answer in results
        )
        for delivery, answer in results:
            _moved(delivery, answer, schedule)
        good = {delivery.webhook_id for delivery, answer in results if answer.is_ok}
        bad = {delivery.webhook_id for delivery, answer in results} - good
        Webhook.objects.filter(pk__in=good).exclude(failing_since=None).update(failing_since=None)
        Webhook.objects.filter(pk__in=bad).update(failing_since=Coalesce("failing_since", Now()))
        gone = {delivery.webhook_id for delivery, answer in results if answer.status == 410}
        spent = {
            delivery.webhook_id for delivery, _ in results if delivery.tries > len(schedule)
        } - gone
        return [*_end(gone, WebhookState.GONE), *_end(spent & bad, WebhookState.FAILING)]


def _moved(delivery: WebhookDelivery, answer: Answer, schedule: Sequence[timedelta]) -> None:
    """Guarded by the lease: whoever lost it changes nothing."""
    changes: dict[str, Any] = {"lease_token": None, "lease_until": None, "updated_at": Now()}
    if answer.is_ok:
        changes["state"] = DeliveryState.DELIVERED
    elif answer.status == 410 or delivery.tries > len(schedule):
        changes["state"] = DeliveryState.FAILED
    else:
        spread = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - no secret
        changes["due_at"] = Now() + schedule[delivery.tries - 1] * spread
    mine = WebhookDelivery.objects.filter(pk=delivery.pk, lease_token=delivery.lease_token)
    mine.update(**changes)


def _end(hook_ids: Collection[uuid.UUID], state: WebhookState) -> list[Ended]:
    """Switch webhooks off; with ``failing`` those that had no success for the whole schedule."""
    ended = []
    for hook in Webhook.objects.filter(pk__in=hook_ids, state=WebhookState.ON):
        since = hook.failing_since
        if state == WebhookState.FAILING and (
            since is None or since > timezone.now() - FAILING_FOR * (1 - JITTER)
        ):
            continue
        Webhook.objects.filter(pk=hook.pk).update(state=state, updated_at=Now())
        waiting_give_up(hook)
        payload = {"webhook_id": str(hook.pk), "why": str(state)}
        event_emit("webhook.disabled", lab_id=hook.lab_id, payload=payload)
        ended.append(Ended(hook.pk, state))
    return ended


def waiting_give_up(hook: Webhook) -> int:
    """What waits for a webhook that was switched off has failed; it can be replayed."""
    waiting = WebhookDelivery.objects.filter(webhook=hook, state=DeliveryState.WAITING)
    return waiting.update(
        state=DeliveryState.FAILED, lease_token=None, lease_until=None, updated_at=Now()
    )


def deliveries_prune() -> int:
    """Forget what ended long ago, with its attempts."""
    old = WebhookDelivery.objects.filter(created_at__lt=timezone.now() - KEPT)
    count = 0
    while ids := list(
        old.exclude(state=DeliveryState.WAITING).values_list("pk", flat=True)[:PRUNE_AT_ONCE]
    ):
        count += WebhookDelivery.objects.filter(pk__in=ids).delete()[0]
    return count

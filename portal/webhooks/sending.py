"""Deliveries made of outbox events, the jobs that send them, and changes of their state.

Events are swept in the transaction that writes their deliveries, so each becomes one delivery for
each webhook that it concerns. One job at a time sends the due deliveries of a webhook. If its
worker is killed, the next attempt of the job sends the message again, under the same id.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from portal.core.database.locks import transaction_lock
from portal.core.events import event_emit
from portal.core.models import Event
from portal.jobs.models import OPEN_STATES, Job, JobState
from portal.jobs.selectors.jobs import process_count
from portal.jobs.services import job_submit
from portal.reader_studies.blinding import events_unseen
from portal.webhooks.catalogue import message_of
from portal.webhooks.models import (
    DeliveryState,
    Webhook,
    WebhookAttempt,
    WebhookDelivery,
    WebhookState,
)
from portal.webhooks.transport import Answer

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
JITTER = 0.1  # share of a pause, either way, so that retries spread out
FAILING_FOR = timedelta(
    days=3
)  # as long as the schedule: a webhook that only failed is switched off
SWEEP_AT_ONCE = 500  # events in a transaction: SQLite's other writers wait for it
SWEEPS_EACH_PASS = 10  # lets other housekeeping run during a large import
AFTER_DEFECT = timedelta(minutes=10)  # until the next job of a webhook whose job failed
DELIVER_KIND = "webhook_deliver"
QUEUE = "default"
RETENTION = timedelta(days=30)  # the default of the trash
PRUNE_AT_ONCE = 5000  # rows in a transaction


@dataclass(frozen=True, slots=True)
class Ended:
    """A webhook that was switched off because its receiver failed."""

    webhook_id: uuid.UUID
    state: WebhookState


def sweep() -> int:
    """Turn events of the outbox into deliveries. Returns the number of swept events."""
    if not Event.objects.filter(is_waiting=True).exists():
        return 0
    with transaction.atomic():
        transaction_lock("webhooks:sweep")
        events = list(Event.objects.filter(is_waiting=True).order_by("id")[:SWEEP_AT_ONCE])
        labs = {event.lab_id for event in events if event.lab_id}
        hooks = list(Webhook.objects.filter(lab_id__in=labs, state=WebhookState.ON))
        if hooks:
            unseen = events_unseen(events)
            new_events = [event for event in events if event.pk not in unseen]
            rows = [
                _delivery(hook, event)
                for event in new_events
                for hook in hooks
                if _concerns(hook, event)
            ]
            WebhookDelivery.objects.bulk_create(rows, ignore_conflicts=True)
        Event.objects.filter(pk__in=[event.pk for event in events]).update(is_waiting=False)
    return len(events)


def _concerns(hook: Webhook, event: Event) -> bool:
    """Return whether an event is of the webhook's lab and types, and newer than the webhook."""
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


def deliveries_schedule() -> int:
    """Sweep the outbox and submit a job for each webhook with due deliveries.

    At most half of the worker processes send webhooks at once, so that hanging receivers do not
    take all of them. The webhook served longest ago is next. Returns the number of submitted jobs.
    """
    for _ in range(SWEEPS_EACH_PASS):
        if sweep() < SWEEP_AT_ONCE:
            break
    if not _due_deliveries().exists():
        return 0
    with transaction.atomic():
        transaction_lock("webhooks:schedule")
        hooks = _hooks_to_serve()
        for hook in hooks:
            job_submit(
                kind=DELIVER_KIND,
                args={"webhook_id": str(hook.pk)},
                lab=hook.lab,
                user=None,
                target=hook,
                is_unique=True,
            )
    return len(hooks)


def _hooks_to_serve() -> list[Webhook]:
    jobs = Job.objects.filter(kind=DELIVER_KIND)
    served = list(jobs.filter(state__in=OPEN_STATES).values_list("target_id", flat=True))
    defective = jobs.filter(state=JobState.FAILED, finished_at__gt=Now() - AFTER_DEFECT)
    room = max(1, process_count(QUEUE) // 2) - len(served)
    if room <= 0:
        return []
    has_due = Exists(_due_deliveries().filter(webhook_id=OuterRef("pk")))
    hooks = Webhook.objects.filter(has_due).select_related("lab")
    hooks = hooks.exclude(pk__in=[*served, *defective.values_list("target_id", flat=True)])
    return list(hooks.order_by(F("last_sent_at").asc(nulls_first=True), "pk")[:room])


def deliveries_due(webhook_id: uuid.UUID, *, max_count: int) -> list[WebhookDelivery]:
    """First due deliveries of a webhook, in the order of their due times."""
    deliveries = _due_deliveries().filter(webhook_id=webhook_id).select_related("webhook")
    return list(deliveries.order_by("due_at", "event_id", "pk")[:max_count])


def _due_deliveries() -> QuerySet[WebhookDelivery]:
    waiting = WebhookDelivery.objects.filter(state=DeliveryState.WAITING, due_at__lte=Now())
    return waiting.filter(webhook__state=WebhookState.ON)


def record(results: Sequence[tuple[WebhookDelivery, Answer]]) -> list[Ended]:
    """Record attempts in one transaction. Returns the webhooks that were switched off by them."""
    with transaction.atomic():
        keys = [delivery.pk for delivery, _ in results]
        present = set(
            WebhookDelivery.objects.select_for_update()
            .filter(pk__in=keys)
            .order_by("pk")
            .values_list("pk", flat=True)
        )
        results = [(delivery, answer) for delivery, answer in results if delivery.pk in present]
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
            _move(delivery, answer)
        good = {delivery.webhook_id for delivery, answer in results if answer.is_ok}
        bad = {delivery.webhook_id for delivery, answer in results} - good
        Webhook.objects.filter(pk__in=good | bad).update(last_sent_at=Now())
        Webhook.objects.filter(pk__in=good).exclude(failing_since=None).update(failing_since=None)
        Webhook.objects.filter(pk__in=bad).update(failing_since=Coalesce("failing_since", Now()))
        gone_ids = {delivery.webhook_id for delivery, answer in results if answer.status == 410}
        spent = {delivery.webhook_id for delivery, _ in results if _is_last(delivery)} - gone_ids
        return [*_end(gone_ids, WebhookState.GONE), *_end(spent & bad, WebhookState.FAILING)]


def _move(delivery: WebhookDelivery, answer: Answer) -> None:
    """Change a delivery by the response, unless its webhook was switched off in the meantime."""
    changes: dict[str, Any] = {"tries": F("tries") + 1, "updated_at": Now()}
    if answer.is_ok:
        changes["state"] = DeliveryState.DELIVERED
    elif answer.status == 410 or _is_last(delivery):
        changes["state"] = DeliveryState.FAILED
    else:
        spread = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - no secret
        changes["due_at"] = Now() + SCHEDULE[delivery.tries] * spread
    waiting = WebhookDelivery.objects.filter(pk=delivery.pk, state=DeliveryState.WAITING)
    waiting.update(**changes)


def _is_last(delivery: WebhookDelivery) -> bool:
    """Return whether no attempt follows the one being recorded."""
    return delivery.tries >= len(SCHEDULE)


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
        payload = {"webhook_id": str(hook.pk), "reason": str(state)}
        event_emit("webhook.disabled", lab_id=hook.lab_id, payload=payload)
        ended.append(Ended(hook.pk, state))
    return ended


def waiting_give_up(hook: Webhook) -> int:
    """Mark waiting deliveries of a switched-off webhook as failed; they can be replayed."""
    waiting = WebhookDelivery.objects.filter(webhook=hook, state=DeliveryState.WAITING)
    return waiting.update(state=DeliveryState.FAILED, updated_at=Now())


def deliveries_prune() -> int:
    """Delete old finished deliveries with their attempts, and old jobs that failed."""
    Job.objects.filter(kind=DELIVER_KIND, finished_at__lt=Now() - RETENTION).delete()
    old = WebhookDelivery.objects.filter(created_at__lt=timezone.now() - RETENTION)
    count = 0
    while ids := list(
        old.exclude(state=DeliveryState.WAITING).values_list("pk", flat=True)[:PRUNE_AT_ONCE]
    ):
        count += WebhookDelivery.objects.filter(pk__in=ids).delete()[0]
    return count

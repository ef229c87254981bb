"""Sending: one job for each webhook with due deliveries."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor

from cryptography.fernet import InvalidToken

from portal.core.tasks import JobContext, JobResult, Priority, job_task
from portal.webhooks import sending as ledger
from portal.webhooks.failure_notices import managers_notify
from portal.webhooks.models import WebhookDelivery
from portal.webhooks.signing import headers_of
from portal.webhooks.transport import Answer, post

RUN_S = 10.0  # then other webhooks are served; the reaper submits a job for the rest
AT_ONCE = 4  # requests; a job gives way only after all of them have ended
AGENT = "Tessera-Webhooks/1"


@job_task(
    ledger.DELIVER_KIND,
    title="Send messages of a webhook",
    queue=ledger.QUEUE,
    priority=Priority.BULK,
    is_internal=True,
)
def webhook_deliver(context: JobContext, *, webhook_id: str) -> JobResult:
    """Send due messages of a webhook, a few at a time, for ``RUN_S`` at most.

    Threads only connect to the receiver. An attempt is recorded only while the job's lease is held.
    """
    ends_s, count = time.monotonic() + RUN_S, 0
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="webhook") as pool:
        while batch := ledger.deliveries_due(uuid.UUID(webhook_id), max_count=AT_ONCE):
            results = list(zip(batch, pool.map(send, batch), strict=True))
            with context.part():
                ended = ledger.record(results)
            for delivery in ended:
                managers_notify(delivery.webhook_id)
            count += len(results)
            if time.monotonic() >= ends_s:
                break
            context.give_way()
    return {"count": count}


def send(delivery: WebhookDelivery) -> Answer:
    """Make one request, signed now, with the message and id of every attempt."""
    body = delivery.body
    try:
        keys = delivery.webhook.secrets
    except InvalidToken:
        return Answer(
            0.0, error="its secret was made under another TESSERA_SECRET_KEY; change the secret"
        )
    at = int(time.time())
    signed = headers_of(delivery.message_id, timestamp=at, body=body, keys=keys)
    headers = {"Content-Type": "application/json", "User-Agent": AGENT, **signed}
    return post(delivery.webhook.url, body=body.encode(), headers=headers)

"""Sends what is due: a few requests at once, in a thread of the reaper's process.

Threads only talk to receivers; this one alone writes. It may be killed at any moment: what it had
claimed is claimed again when the lease ends.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import timedelta

from cryptography.fernet import InvalidToken
from django.db import DatabaseError, connection

from portal.core.connections import connection_refresh
from portal.hooks import ledger
from portal.hooks.ledger import SCHEDULE
from portal.hooks.models import WebhookDelivery
from portal.hooks.notices import managers_told
from portal.hooks.reaching import Answer, post
from portal.hooks.signing import headers_of

logger = logging.getLogger(__name__)
SENDERS = 16  # threads that mostly wait for receivers
IDLE_S = 1.0  # between two looks into the outbox
AGENT = "Tessera-Webhooks/1"


def send(delivery: WebhookDelivery) -> Answer:
    """One request, signed now; the message and its id are those of every attempt."""
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


class Sender:
    """The requests under way, and what is done when they end."""

    def __init__(self, *, schedule: Sequence[timedelta] = SCHEDULE) -> None:
        self._schedule = schedule
        self._pool = ThreadPoolExecutor(SENDERS, thread_name_prefix="webhook")
        self._under_way: dict[Future[Answer], WebhookDelivery] = {}

    def step(self) -> int:
        """Sweep, begin what is due, write what ended. Returns how many ended."""
        ledger.sweep()
        busy: Counter[uuid.UUID] = Counter(one.webhook_id for one in self._under_way.values())
        for delivery in ledger.claim(SENDERS - len(self._under_way), busy=busy):
            self._under_way[self._pool.submit(send, delivery)] = delivery
        if not self._under_way:
            return 0
        done, _ = wait(self._under_way, timeout=IDLE_S, return_when=FIRST_COMPLETED)
        results = [(self._under_way.pop(one), one.result()) for one in done]
        for ended in ledger.record(results, schedule=self._schedule) if results else ():
            managers_told(ended.webhook_id)
        return len(results)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._under_way

    def close(self) -> None:
        """Wait for nothing: leases end by themselves."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def deliver_forever(stop: threading.Event) -> None:
    """Until ``stop``; a database that is away is waited for."""
    sender = Sender()
    try:
        while not stop.is_set():
            try:
                connection_refresh()
                moved = sender.step()
            except DatabaseError:
                logger.warning("webhooks: the database does not answer", exc_info=True)
                moved = 0
            if not moved and sender.is_idle:
                stop.wait(IDLE_S)
    finally:
        sender.close()
        connection.close()

"""A worker's sign of life, and the promise that its children die with it."""

from __future__ import annotations

import logging
import threading
from typing import Any

from celery.signals import worker_process_init, worker_ready, worker_shutting_down
from django.db import DatabaseError, connection
from django.utils import timezone

from portal.core.children import die_with_parent
from portal.jobs.models import WorkerSign

logger = logging.getLogger(__name__)

EVERY_S = 10.0  # four signs within the 45 s after which a worker counts as silent
_stop = threading.Event()


@worker_process_init.connect
def _on_child(**_: Any) -> None:
    die_with_parent()


@worker_ready.connect
def _on_ready(sender: Any = None, **_: Any) -> None:
    name = str(getattr(sender, "hostname", "worker"))
    queues = ",".join(sorted(sender.app.amqp.queues.consume_from)) if sender else ""
    threading.Thread(target=_sign_forever, args=(name, queues), daemon=True).start()


@worker_shutting_down.connect
def _on_stop(**_: Any) -> None:
    _stop.set()


def _sign_forever(name: str, queues: str) -> None:
    while True:
        try:
            WorkerSign.objects.update_or_create(
                name=name, defaults={"queues": queues, "seen_at": timezone.now()}
            )
        except DatabaseError:
            logger.warning("worker %s: sign of life not written", name, exc_info=True)
        finally:
            connection.close()  # a pool child forked later must not inherit an open database file
        if _stop.wait(EVERY_S):
            return

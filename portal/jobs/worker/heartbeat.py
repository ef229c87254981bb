"""A worker's sign of life, the promise that its children die with it, and its last will."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from billiard import active_children
from celery.signals import worker_process_init, worker_ready, worker_shutting_down
from django.db import DatabaseError, connection
from django.db.models.functions import Now

from ml.gpu import device_line
from portal.core.children import die_with_parent
from portal.core.observe.traces import traces_start
from portal.jobs import ledger
from portal.jobs.models import WorkerSign
from portal.jobs.worker.runner import worker_name

logger = logging.getLogger(__name__)

STOPPED = "Its worker was stopped; it continues in another."
FINISH_WITHIN_S = 5.0  # within the 8 s of ``serve`` and the 10 s of Docker before they kill
EVERY_S = 10.0  # four signs within the 45 s after which a worker counts as silent
GPU_QUEUE = "gpu"  # jobs that run networks; its worker says on what
_stop = threading.Event()


@worker_process_init.connect
def _on_child(**_: Any) -> None:
    die_with_parent()
    traces_start("tessera-worker")


@worker_ready.connect
def _on_ready(sender: Any = None, **_: Any) -> None:
    name = str(getattr(sender, "hostname", "worker"))
    queues = ",".join(sorted(sender.app.amqp.queues.consume_from)) if sender else ""
    processes = int(getattr(getattr(sender, "controller", None), "concurrency", 1))
    threading.Thread(target=_sign_forever, args=(name, queues, processes), daemon=True).start()


@worker_shutting_down.connect
def _on_stop(**_: Any) -> None:
    _stop.set()
    threading.Thread(target=_hand_back, daemon=True).start()


def _hand_back() -> None:
    """Short jobs finish; what runs on goes back into the queue, for the workers that come next."""
    time.sleep(FINISH_WITHIN_S)
    names = [worker_name(child.pid) for child in active_children()]
    try:
        count = ledger.hand_back(ledger.run_by(names), message=STOPPED)
    except DatabaseError:
        logger.warning("jobs not handed back; their leases will expire", exc_info=True)
        return
    finally:
        connection.close()
    logger.info("worker stops: %d jobs handed back", count)


def sign(name: str, queues: str, processes: int = 1, device: str = "") -> None:
    """Write that this worker is alive, at the database's time."""
    facts = {"queues": queues, "processes": processes, "device": device, "seen_at": Now()}
    WorkerSign.objects.update_or_create(name=name, defaults=facts)


def _sign_forever(name: str, queues: str, processes: int) -> None:
    device = device_line()[:120] if GPU_QUEUE in queues.split(",") else ""
    if device:
        logger.info("worker %s: networks run on %s", name, device)
    while True:
        try:
            sign(name, queues, processes, device)
        except DatabaseError:
            logger.warning("worker %s: sign of life not written", name, exc_info=True)
        finally:
            connection.close()  # a pool child forked later must not inherit an open database file
        if _stop.wait(EVERY_S):
            return

"""Heartbeats of a worker, and the release of its jobs when it is stopped."""

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
from portal.jobs import claims
from portal.jobs.models import WorkerHeartbeat
from portal.jobs.worker.messages import send_next
from portal.jobs.worker.runner import worker_name

logger = logging.getLogger(__name__)

STOPPED_MESSAGE = "Its worker was stopped; it continues in another."
SHUTDOWN_GRACE_S = 5.0  # within the 8 s of ``serve`` and the 10 s of Docker before they kill
HEARTBEAT_EVERY_S = 10.0  # four heartbeats within ``WORKER_SILENT_AFTER``
GPU_QUEUE = "gpu"  # jobs that run networks; its worker reports the device
_stop = threading.Event()


@worker_process_init.connect
def _on_process_start(**_: Any) -> None:
    die_with_parent()
    traces_start("tessera-worker")


@worker_ready.connect
def _on_ready(sender: Any = None, **_: Any) -> None:
    name = str(getattr(sender, "hostname", "worker"))
    queues = ",".join(sorted(sender.app.amqp.queues.consume_from)) if sender else ""
    processes = int(getattr(getattr(sender, "controller", None), "concurrency", 1))
    threading.Thread(target=_send_heartbeats, args=(name, queues, processes), daemon=True).start()


@worker_shutting_down.connect
def _on_stop(**_: Any) -> None:
    _stop.set()
    threading.Thread(target=_release_unfinished, daemon=True).start()


def _release_unfinished() -> None:
    """Give short jobs time to finish, then release the others for the next workers."""
    time.sleep(SHUTDOWN_GRACE_S)
    names = [worker_name(child.pid) for child in active_children()]
    try:
        count = claims.release(claims.jobs_run_by(names), message=STOPPED_MESSAGE)
    except DatabaseError:
        logger.warning("jobs not released; their leases will expire", exc_info=True)
        return
    finally:
        connection.close()
    logger.info("worker stops: %d jobs released", count)


def write_heartbeat(name: str, queues: str, processes: int = 1, device: str = "") -> None:
    """Record the time, queues, processes and device of a worker that is alive."""
    fields = {"queues": queues, "processes": processes, "device": device, "last_seen_at": Now()}
    WorkerHeartbeat.objects.update_or_create(name=name, defaults=fields)


def _resend(queues: list[str]) -> None:
    """Send the first jobs of the queues again; a killed worker took its messages with it."""
    claims.mark_queues_unsent(queues)
    for queue in queues:
        send_next(queue)


def _send_heartbeats(name: str, queues: str, processes: int) -> None:
    device = device_line()[:120] if GPU_QUEUE in queues.split(",") else ""
    if device:
        logger.info("worker %s: networks run on %s", name, device)
    is_new = True
    while True:
        try:
            write_heartbeat(name, queues, processes, device)
            if is_new:
                _resend(queues.split(","))
            is_new = False
        except DatabaseError:
            logger.warning("worker %s: heartbeat not written", name, exc_info=True)
        finally:
            connection.close()  # a pool child forked later must not inherit an open database file
        if _stop.wait(HEARTBEAT_EVERY_S):
            return

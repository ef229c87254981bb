"""The health check of workers and the reaper."""

from __future__ import annotations

import socket

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from portal.jobs.models import WorkerHeartbeat
from portal.jobs.selectors.jobs import REAPER_QUEUES, WORKER_SILENT_AFTER
from portal.jobs.worker.heartbeat import write_heartbeat

pytestmark = pytest.mark.django_db
HOST = socket.gethostname()


@pytest.mark.parametrize(
    ("name", "queues"), [(f"celery@{HOST}", "default"), (f"reaper@{HOST}:17", REAPER_QUEUES)]
)
def test_a_machine_with_a_recent_heartbeat_is_alive(name: str, queues: str) -> None:
    write_heartbeat(name, queues)
    call_command("alive")


@pytest.mark.parametrize("name", ["celery@elsewhere", f"celery@not-{HOST}", f"celery@{HOST}-2"])
def test_heartbeats_of_another_machine_do_not_count(name: str) -> None:
    write_heartbeat(name, "default")
    with pytest.raises(CommandError):
        call_command("alive")


def test_a_machine_without_a_recent_heartbeat_is_not_alive() -> None:
    write_heartbeat(f"celery@{HOST}", "default")
    silent = timezone.now() - 2 * WORKER_SILENT_AFTER
    WorkerHeartbeat.objects.update(last_seen_at=silent)
    with pytest.raises(CommandError):
        call_command("alive")

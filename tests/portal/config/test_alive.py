"""The health check of workers and the reaper."""

from __future__ import annotations

import socket

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from portal.jobs.models import WorkerSign
from portal.jobs.selectors import REAPER_QUEUES, WORKER_SILENT_AFTER
from portal.jobs.worker.heartbeat import sign

pytestmark = pytest.mark.django_db
HOST = socket.gethostname()


@pytest.mark.parametrize(
    ("name", "queues"), [(f"celery@{HOST}", "default"), (f"reaper@{HOST}:17", REAPER_QUEUES)]
)
def test_a_machine_that_was_heard_of_is_alive(name: str, queues: str) -> None:
    sign(name, queues)
    call_command("alive")


@pytest.mark.parametrize("name", ["celery@elsewhere", f"celery@not-{HOST}", f"celery@{HOST}-2"])
def test_another_machine_does_not_count(name: str) -> None:
    sign(name, "default")
    with pytest.raises(CommandError):
        call_command("alive")


def test_one_that_fell_silent_is_not_alive() -> None:
    sign(f"celery@{HOST}", "default")
    silent = timezone.now() - 2 * WORKER_SILENT_AFTER
    WorkerSign.objects.update(seen_at=silent)
    with pytest.raises(CommandError):
        call_command("alive")

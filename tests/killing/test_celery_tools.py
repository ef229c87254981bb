"""Celery's own tools show the jobs of a real worker: its tasks, and what happens to each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from portal.core.environment import transport_options
from portal.core.tasks import REGISTRY
from tests.killing.harness import Portal

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


@pytest.fixture
def portal(tmp_path: Path) -> Iterator[Portal]:
    database = f"sqlite:///{tmp_path / 'db.sqlite3'}"
    made = Portal(tmp_path, database, "filesystem://", lambda: None)
    yield made
    made.close()
    made.ask_no_more()


def test_inspect_lists_every_kind_of_job_and_events_name_running_jobs(portal: Portal) -> None:
    tools = Celery("tools", broker="filesystem://", set_as_current=False)
    folder = Path(portal.env["TESSERA_BROKER_FOLDER"])
    tools.conf.broker_transport_options = transport_options("filesystem://", folder=folder)
    portal.start_worker()
    inspect = tools.control.inspect(timeout=1.0)
    options: dict[str, list[str]] = {}

    def is_registered() -> bool:
        options.update(inspect.registered() or {})
        return bool(options)

    portal.wait_until(is_registered, "the worker to answer")
    ((_, names),) = options.items()
    assert {*REGISTRY, "count_slowly"} <= set(names)
    tools.control.enable_events()

    events: list[dict[str, Any]] = []
    with tools.connection_for_read() as client:
        receiver = tools.events.Receiver(client, handlers={"*": events.append})
        with receiver.consumer_context() as (connection, _, _):
            (job_id,) = portal.control("submit", "1", "a")

            def has_ended() -> bool:
                with suppress(TimeoutError):
                    connection.drain_events(timeout=1)
                return "task-succeeded" in {event["type"] for event in events}

            portal.wait_until(has_ended, "the event of the task's end")
    (received,) = [event for event in events if event["type"] == "task-received"]
    assert received["name"] == "count_slowly" and job_id in received["args"]

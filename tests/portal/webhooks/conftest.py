"""A receiver on this machine that answers what a test tells it to, and a webhook to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab, User
from portal.webhooks import sending as ledger
from portal.webhooks.models import Webhook
from portal.webhooks.services import webhook_create


@dataclass
class Receiver:
    """HTTP server that records requests and responds with the next of ``answers``, then 204."""

    port: int
    answers: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/in?key=1"


@pytest.fixture(scope="session")
def _server() -> Iterator[ThreadingHTTPServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver: Receiver = self.server.receiver  # type: ignore[attr-defined]
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(receiver.answers.pop(0) if receiver.answers else 204)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(receiver.body)

        def log_message(self, *_: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def receiver(_server: ThreadingHTTPServer, settings: Any) -> Receiver:
    settings.TESSERA_WEBHOOK_NETWORKS = ["127.0.0.1/32"]
    result = Receiver(_server.server_port)
    _server.receiver = result  # type: ignore[attr-defined]
    return result


@pytest.fixture
def made(lab: Lab, manager: User, receiver: Receiver) -> tuple[Webhook, str]:
    """A webhook to the receiver, and its secret."""
    return webhook_create(lab=lab, user=manager, name="LIS", url=receiver.url)


def deliver() -> None:
    """Send all that is due, as the reaper and a worker do."""
    while ledger.deliveries_schedule():
        for job in Job.objects.filter(kind=ledger.DELIVER_KIND, state=JobState.QUEUED):
            job_run(job.pk)

"""A thousand webhooks to a receiver that fails half the time: ``python -m tests.bench.webhooks``.

A process runs the jobs that send; it is killed half-way (kill -9) and followed by another. Reported
are the rate, how many came twice, and that none was lost. The pauses between attempts are tenths of
a second here instead of hours, and a lease two seconds.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.bench.measure import Row, Section
from tests.bench.portal import BenchPortal, portal_open
from tests.polling import wait_until

COUNT = 1_000
PATIENCE_S = 300.0
PAUSES = [timedelta(seconds=0.1)] * 60  # with half of all failing, none needs as many


class _Receiver(ThreadingHTTPServer):
    """Counts what it took, by id; of a fixed chance it fails every second request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.taken: Counter[str] = Counter()
        self.asked = 0
        self.chance = random.Random(7)
        self.lock = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    server: _Receiver

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.asked += 1
            fails = self.server.chance.random() < 0.5
            if not fails:
                self.server.taken[self.headers["webhook-id"]] += 1
        self.send_response(500 if fails else 204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        return


def webhooks_to_a_failing_receiver(portal: BenchPortal) -> Section:
    """Emit, deliver, kill, deliver on; count."""
    from portal.core.events import events_emit
    from portal.webhooks.models import WebhookDelivery
    from portal.webhooks.services import webhook_create

    os.environ["TESSERA_WEBHOOK_NETWORKS"] = "127.0.0.1/32"
    env = os.environ | portal.env | {"TESSERA_JOB_LEASE_S": "2"}
    with _Receiver() as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        from django.test.utils import override_settings

        with override_settings(TESSERA_WEBHOOK_NETWORKS=["127.0.0.1/32"]):
            url = f"http://127.0.0.1:{receiver.server_port}/"
            hook, _ = webhook_create(lab=portal.lab, user=portal.user, name="LIS", url=url)
        cases = [{"case_id": str(portal.canvas.case_id)}] * COUNT
        events_emit("case.changed", lab_id=portal.lab.pk, payloads=cases)
        command = [sys.executable, "-m", "tests.bench.webhooks", "--send"]
        began = time.perf_counter()
        first = subprocess.Popen(command, env=env)
        wait_until(lambda: len(receiver.taken) >= COUNT // 2, "half", within_s=PATIENCE_S)
        first.kill()
        first.wait()
        second = subprocess.Popen(command, env=env)
        mine = WebhookDelivery.objects.filter(webhook=hook)
        wait_until(
            lambda: mine.filter(state="delivered").count() == COUNT, "all", within_s=PATIENCE_S
        )
        took_s = time.perf_counter() - began
        second.kill()
        second.wait()
        receiver.shutdown()
    lost = COUNT - len(receiver.taken)
    twice = sum(count - 1 for count in receiver.taken.values())
    return Section(
        "Webhooks to a receiver that fails half the time",
        f"{COUNT} messages; the sender is killed half-way, and another one continues.",
        [
            Row("messages delivered", COUNT / took_s, "a second"),
            Row("requests sent", float(receiver.asked), "requests"),
            Row("lost", float(lost), "messages"),
            Row("received twice, with the same id", float(twice), "messages"),
        ],
    )


def _send() -> None:
    import django

    django.setup()
    from portal.jobs.models import Job, JobState
    from portal.jobs.worker.reaper import reap
    from portal.jobs.worker.runner import job_run
    from portal.webhooks import sending as ledger

    ledger.SCHEDULE = PAUSES
    waiting = Job.objects.filter(kind=ledger.DELIVER_KIND, state=JobState.QUEUED)
    while True:
        reap()
        ledger.deliveries_schedule()
        for job_id in list(waiting.values_list("pk", flat=True)):
            job_run(job_id)
        time.sleep(0.05)  # between two passes


if __name__ == "__main__":
    if "--send" in sys.argv:
        _send()
    else:
        with tempfile.TemporaryDirectory() as name:
            section = webhooks_to_a_failing_receiver(portal_open(Path(name)))
            for row in section.rows:
                print(f"{row.what:<40} {row.value:10.2f} {row.unit}")

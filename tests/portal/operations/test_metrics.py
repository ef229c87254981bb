"""``/metrics``: who may read it, and that what happened is counted once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from portal.core.tasks import REGISTRY, UserError, job_task
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[3]
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(client: Client) -> Samples:
    text = client.get("/metrics").content.decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


@pytest.fixture
def kinds() -> Any:
    def fine(context: Any) -> None: ...

    def broken(context: Any) -> None:
        raise UserError("It is empty.", code="empty")

    job_task("counted_fine")(fine)
    job_task("counted_broken")(broken)
    yield
    for name in ("counted_fine", "counted_broken"):
        REGISTRY.pop(name)


def test_jobs_are_counted_by_kind_state_and_reason(
    client: Client, lab: Lab, kinds: None, storage: Path
) -> None:
    done = [job_submit(kind="counted_fine", args={}, lab=lab, user=None) for _ in range(2)]
    failed = job_submit(kind="counted_broken", args={}, lab=lab, user=None)
    for job in (*done, failed):
        job_run(job.pk)
    began = timezone.now() - timedelta(seconds=10)
    Job.objects.filter(pk__in=[job.pk for job in done]).update(
        started_at=began, finished_at=began + timedelta(seconds=3)
    )
    waiting = job_submit(kind="counted_fine", args={}, lab=lab, user=None)
    Job.objects.filter(pk=waiting.pk).update(created_at=timezone.now() - timedelta(minutes=5))
    values = samples(client)
    queue = {"kind": "counted_fine", "queue": "default"}
    assert values[key("tessera_jobs_waiting", **queue)] == 1
    assert values[key("tessera_jobs_oldest_seconds", **queue)] == pytest.approx(300, abs=5)
    succeeded = {"kind": "counted_fine", "state": "succeeded"}
    assert values[key("tessera_jobs_ended_total", **succeeded)] == 2
    assert values[key("tessera_job_seconds_total", **succeeded)] == pytest.approx(6)
    assert values[key("tessera_jobs_failed_total", kind="counted_broken", code="empty")] == 1
    assert values[key("tessera_database_up")] == 1
    assert values[key("tessera_workers_alive")] == 0


def test_requests_are_counted_by_url_pattern(page: Client) -> None:
    labels = {"method": "GET", "route": "jobs/<uuid:job_id>/", "status": "404"}
    name = key("tessera_request_seconds_count", **labels)
    before = samples(page).get(name, 0)
    for digit in "123":
        page.get(f"/jobs/3f2504e0-4f89-41d3-9a0c-0305e82c330{digit}/")
    page.generic("BREW", "/jobs/")
    after = samples(page)
    assert after[name] == before + 3
    methods = {dict(labels).get("method") for metric, labels in after if "request" in metric}
    assert "BREW" not in methods and "other" in methods


def test_the_volume_is_measured_and_absent_when_it_fails(
    client: Client, storage: Path, settings: Any
) -> None:
    assert samples(client)[key("tessera_storage_free_bytes")] > 0
    settings.TESSERA_STORAGE = storage / "gone"
    assert key("tessera_storage_free_bytes") not in samples(client)


def test_an_unreachable_database_shows_in_the_metrics(
    client: Client, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> list[Any]:
        raise DatabaseError("away")

    monkeypatch.setattr("portal.operations.metrics.queue_lengths", away)
    assert samples(client)[key("tessera_database_up")] == 0


def test_without_a_token_only_local_clients_read_metrics(client: Client, storage: Path) -> None:
    assert client.get("/metrics").status_code == 200
    assert client.get("/metrics", REMOTE_ADDR="10.0.0.7").status_code == 403
    for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
        assert client.get("/metrics", headers={header: "127.0.0.1"}).status_code == 403


def test_with_a_token_only_its_holders_read_metrics(
    client: Client, storage: Path, settings: Any
) -> None:
    settings.TESSERA_METRICS_TOKEN = "scrape-me-1234"
    assert client.get("/metrics").status_code == 403
    for wrong in ("", "Bearer ", "Bearer scrape-me-123", "Bearer scrape-me-12345"):
        assert client.get("/metrics", headers={"Authorization": wrong}).status_code == 403
    right = {"Authorization": "Bearer scrape-me-1234"}
    assert client.get("/metrics", REMOTE_ADDR="10.0.0.7", headers=right).status_code == 200


def test_metrics_of_several_processes_add_up(tmp_path: Path) -> None:
    count = (
        "from portal.core.observe.metrics import REQUEST_SECONDS as r;"
        "r.labels('GET', 'cases/', '200').observe(0.02)"
    )
    read = (
        "from prometheus_client import CollectorRegistry, generate_latest;"
        "from prometheus_client.multiprocess import MultiProcessCollector;"
        "registry = CollectorRegistry(); MultiProcessCollector(registry);"
        "print(generate_latest(registry).decode())"
    )
    env = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    run: Callable[..., Any] = subprocess.run
    for _ in range(3):
        run([sys.executable, "-c", count], cwd=ROOT, env=env, check=True)
    done = run(
        [sys.executable, "-c", read], cwd=ROOT, env=env, check=True, capture_output=True, text=True
    )
    line = 'tessera_request_seconds_count{method="GET",route="cases/",status="200"} 3.0'
    assert line in done.stdout

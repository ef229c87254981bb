"""``/healthz`` and ``/readyz``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone

from portal.jobs.models import WorkerHeartbeat
from portal.operations import health

pytestmark = pytest.mark.django_db


def test_healthz_makes_no_queries(client: Client, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert client.get("/healthz").json() == {"status": "ok"}


def test_readyz_names_a_missing_worker(client: Client, storage: object) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"] == {
        "database": "ok",
        "broker": "ok",
        "storage": "ok",
        "worker": "no heartbeat",
    }


def test_readyz_answers_200_when_all_parts_work(client: Client, storage: object) -> None:
    WorkerHeartbeat.objects.create(name="w", queues="default", last_seen_at=timezone.now())
    assert client.get("/readyz").status_code == 200


def test_readyz_lists_each_device_once(client: Client, storage: object) -> None:
    for name, device in (("a", "CPU"), ("b", "Some GPU (cuda:0, 40 GiB)"), ("c", "CPU"), ("d", "")):
        facts = {"queues": "default,gpu", "device": device, "last_seen_at": timezone.now()}
        WorkerHeartbeat.objects.create(name=name, **facts)
    devices = ["CPU", "Some GPU (cuda:0, 40 GiB)"]
    assert client.get("/readyz").json()["devices"] == devices
    assert client.get("/healthz?details").json() == {"status": "ok", "devices": devices}


def test_healthz_with_details_answers_without_a_database(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> list[str]:
        raise DatabaseError

    monkeypatch.setattr(health, "worker_devices", broken)
    assert client.get("/healthz?details").json() == {"status": "ok", "devices": []}


def test_an_old_heartbeat_does_not_count(client: Client, storage: object) -> None:
    old = timezone.now() - timedelta(minutes=5)
    WorkerHeartbeat.objects.create(name="w", queues="default", last_seen_at=old)
    assert client.get("/readyz").json()["parts"]["worker"] == "no heartbeat"


def test_readyz_names_storage_that_cannot_be_written(
    client: Client, settings: Any, tmp_path: Any
) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    settings.TESSERA_STORAGE = file
    assert client.get("/readyz").json()["parts"]["storage"] == "cannot be written"


@pytest.mark.slow
def test_readyz_names_an_unreachable_broker(client: Client, storage: object, settings: Any) -> None:
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    assert client.get("/readyz").json()["parts"]["broker"] == "does not answer"

"""``/healthz`` and ``/readyz``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone

from portal.config import health
from portal.jobs.models import WorkerSign

pytestmark = pytest.mark.django_db


def test_alive_touches_no_database(client: Client, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert client.get("/healthz").json() == {"status": "ok"}


def test_ready_names_the_silent_worker(client: Client, storage: object) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"] == {
        "database": "ok",
        "broker": "ok",
        "storage": "ok",
        "worker": "no sign of life",
    }


def test_ready_when_all_parts_are_well(client: Client, storage: object) -> None:
    WorkerSign.objects.create(name="w", queues="default", seen_at=timezone.now())
    assert client.get("/readyz").status_code == 200


def test_ready_says_what_networks_run_on_each_device_once(client: Client, storage: object) -> None:
    for name, device in (("a", "CPU"), ("b", "Some GPU (cuda:0, 40 GiB)"), ("c", "CPU"), ("d", "")):
        facts = {"queues": "default,gpu", "device": device, "seen_at": timezone.now()}
        WorkerSign.objects.create(name=name, **facts)
    devices = ["CPU", "Some GPU (cuda:0, 40 GiB)"]
    assert client.get("/readyz").json()["devices"] == devices
    assert client.get("/healthz?details").json() == {"status": "ok", "devices": devices}


def test_alive_with_details_where_the_database_does_not_answer(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> list[str]:
        raise DatabaseError

    monkeypatch.setattr(health, "devices_alive", broken)
    assert client.get("/healthz?details").json() == {"status": "ok", "devices": []}


def test_an_old_sign_of_life_does_not_count(client: Client, storage: object) -> None:
    old = timezone.now() - timedelta(minutes=5)
    WorkerSign.objects.create(name="w", queues="default", seen_at=old)
    assert client.get("/readyz").json()["parts"]["worker"] == "no sign of life"


def test_ready_names_storage_that_cannot_be_written(
    client: Client, settings: Any, tmp_path: Any
) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    settings.TESSERA_STORAGE = file
    assert client.get("/readyz").json()["parts"]["storage"] == "cannot be written"


def test_ready_names_a_broker_that_is_away(client: Client, storage: object, settings: Any) -> None:
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    assert client.get("/readyz").json()["parts"]["broker"] == "does not answer"

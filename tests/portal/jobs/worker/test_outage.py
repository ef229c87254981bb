"""Outages of the database while jobs run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from celery.exceptions import Retry
from django.db import OperationalError
from django.test import Client

from portal.core import housekeeping
from portal.core.registry import Registry
from portal.jobs import claims
from portal.jobs.models import JobState
from portal.jobs.services import job_submit
from portal.jobs.worker.celery_tasks import run_job
from portal.jobs.worker.reaper import reap_forever
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab

pytestmark = pytest.mark.django_db
Kind = Callable[..., str]
CONNECTION_LOST = OperationalError("server closed the connection unexpectedly")


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is found to be broken."""
    monkeypatch.setattr("django.db.connection.is_usable", lambda: False, raising=False)
    monkeypatch.setattr("portal.jobs.worker.context.connection", _Connection())
    monkeypatch.setattr("portal.jobs.worker.runner.connection", _Connection())
    monkeypatch.setattr("portal.core.connections.connection", _Connection())


class _Connection:
    """Broken, and no part of the test's own transaction."""

    in_atomic_block = True

    def close(self) -> None: ...

    def is_usable(self) -> bool:
        return False


def test_progress_that_cannot_be_written_does_not_end_the_work(
    lab: Lab, kind: Kind, away: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = claims.renew_lease, []

    def renew(*args: Any, **changes: Any) -> bool:
        calls.append(changes)
        if len(calls) == 1:
            raise CONNECTION_LOST
        return real(*args, **changes)

    def work(context: Any) -> None:
        context.progress(1, 3, "first")
        context.progress(2, 3, "second")

    monkeypatch.setattr(claims, "renew_lease", renew)
    job = job_submit(kind=kind(work), args={}, lab=lab, user=None)
    job_run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.attempts, job.phase) == (JobState.SUCCEEDED, 1, "second")


def test_an_outage_releases_the_job_without_an_attempt(
    lab: Lab, kind: Kind, away: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tries = claims.release, []

    def release(*args: Any, **options: Any) -> int:
        tries.append(1)
        if len(tries) < 3:
            raise CONNECTION_LOST
        return real(*args, **options)

    def work(context: Any) -> None:
        raise CONNECTION_LOST

    monkeypatch.setattr(claims, "release", release)
    monkeypatch.setattr("portal.jobs.worker.runner.RECONNECT_PAUSE_S", 0.01)
    job = job_submit(kind=kind(work), args={}, lab=lab, user=None)
    job_run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.attempts, job.lease_token) == (JobState.QUEUED, 0, None)


def test_a_wrong_statement_is_a_bug_and_no_outage(lab: Lab, kind: Kind) -> None:
    def work(context: Any) -> None:
        raise OperationalError("no such column: labs_user.x")

    job = job_submit(kind=kind(work), args={}, lab=lab, user=None)
    job_run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error_code) == (JobState.FAILED, "internal")


def test_a_message_during_an_outage_ends_in_a_retry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def raise_lost(job_id: object) -> bool:
        raise CONNECTION_LOST

    monkeypatch.setattr("portal.jobs.worker.batching.run_if_next", raise_lost)
    with pytest.raises(Retry):
        run_job("3f2504e0-4f89-41d3-9a0c-0305e82c3301")


@pytest.mark.parametrize("path", ["/jobs/", "/api/v1/jobs/"])
def test_a_request_during_an_outage_is_answered_503(
    page: Client, away: None, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_lost(**_: object) -> None:
        raise CONNECTION_LOST

    monkeypatch.setattr("portal.jobs.selectors.jobs.job_list", raise_lost)
    page.raise_request_exception = False
    answer = page.get(path)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    if path.startswith("/api"):
        assert answer.json()["code"] == "unavailable"


def test_daily_chores_run_after_a_failed_chore_of_each_pass(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.TESSERA_JOB_REAP_EVERY_S = 0
    stop = threading.Event()

    def fails() -> None:
        raise CONNECTION_LOST

    monkeypatch.setattr(housekeeping, "EACH_PASS", Registry({"fails": (fails,)}))
    monkeypatch.setattr(housekeeping, "DAILY", Registry({"last": (stop.set,)}))
    monkeypatch.setattr(housekeeping, "FIRST_AFTER_S", 0.0)
    timer = threading.Timer(20, stop.set)
    timer.start()
    reap_forever(stop)
    assert timer.is_alive()
    timer.cancel()

"""A database that goes away while a job runs costs the job neither its work nor an attempt."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from portal.core import housekeeping
from portal.jobs import ledger
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_submit
from portal.jobs.worker.bell import run
from portal.jobs.worker.reaper import reap_forever
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab

pytestmark = pytest.mark.django_db
Kind = Callable[..., str]
GONE = OperationalError("server closed the connection unexpectedly")


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
    real, calls = ledger.renew, []

    def renew(*args: Any, **changes: Any) -> bool:
        calls.append(changes)
        if len(calls) == 1:
            raise GONE
        return real(*args, **changes)

    def work(context: Any) -> None:
        context.progress(1, 3, "first")
        context.progress(2, 3, "second")

    monkeypatch.setattr(ledger, "renew", renew)
    job = job_submit(kind=kind(work), args={}, lab=lab, user=None)
    job_run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.attempts, job.phase) == (JobState.SUCCEEDED, 1, "second")


def test_an_outage_hands_the_job_back_and_spends_no_attempt(
    lab: Lab, kind: Kind, away: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tries = ledger.hand_back, []

    def hand_back(*args: Any, **options: Any) -> int:
        tries.append(1)
        if len(tries) < 3:
            raise GONE
        return real(*args, **options)

    def work(context: Any) -> None:
        raise GONE

    monkeypatch.setattr(ledger, "hand_back", hand_back)
    monkeypatch.setattr("portal.jobs.worker.runner.AGAIN_AFTER_S", 0.01)
    job = job_submit(kind=kind(work), args={}, lab=lab, user=None)
    job_run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.attempts, job.lease_token) == (JobState.QUEUED, 0, None)


def test_a_statement_that_is_wrong_is_a_bug_not_an_outage(lab: Lab, kind: Kind) -> None:
    def work(context: Any) -> None:
        raise OperationalError("no such column: labs_user.x")

    job = job_submit(kind=kind(work), args={}, lab=lab, user=None)
    job_run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error_code) == (JobState.FAILED, "internal")


def test_a_bell_while_the_database_is_away_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(job_id: object) -> bool:
        raise GONE

    monkeypatch.setattr("portal.jobs.worker.runner.job_run", gone)
    run("3f2504e0-4f89-41d3-9a0c-0305e82c3301")
    assert not Job.objects.exists()


@pytest.mark.parametrize("path", ["/jobs/", "/api/v1/jobs/"])
def test_a_request_meanwhile_is_answered_503(
    page: Client, away: None, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(**_: object) -> None:
        raise GONE

    monkeypatch.setattr("portal.jobs.selectors.job_list", gone)
    page.raise_request_exception = False
    answer = page.get(path)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    if path.startswith("/api"):
        assert answer.json()["code"] == "unavailable"


def test_a_chore_of_each_pass_that_fails_keeps_no_daily_one(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.TESSERA_JOB_REAP_EVERY_S = 0
    stop = threading.Event()

    def fails() -> None:
        raise GONE

    monkeypatch.setattr(housekeeping, "_EACH_PASS", {"fails": fails})
    monkeypatch.setattr(housekeeping, "_CHORES", {"last": stop.set})
    monkeypatch.setattr(housekeeping, "FIRST_AFTER_S", 0.0)
    timer = threading.Timer(20, stop.set)
    timer.start()
    reap_forever(stop)
    assert timer.is_alive()
    timer.cancel()

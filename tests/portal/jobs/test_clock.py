"""The database's clock decides: a machine whose own clock is wrong takes and loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from portal.jobs import ledger
from portal.jobs.models import Job, JobState, WorkerSign
from portal.jobs.selectors import workers_alive
from portal.jobs.services import job_submit
from portal.jobs.worker.reaper import reap
from portal.labs.models import Lab

pytestmark = pytest.mark.django_db
REAL_NOW = timezone.now
Wrong = Callable[[timedelta], None]


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> Wrong:
    """``wrong(offset)``: from now on this process's clock is off by so much."""

    def set_offset(offset: timedelta) -> None:
        monkeypatch.setattr(timezone, "now", lambda: REAL_NOW() + offset)

    return set_offset


@pytest.fixture
def job(lab: Lab, kind: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setattr("portal.jobs.worker.reaper.ring", lambda *_, **__: True)
    return job_submit(kind=kind(lambda context: None, title="x"), args={}, lab=lab, user=None)


HOUR = timedelta(hours=1)


def test_a_reaper_with_a_clock_ahead_leaves_a_living_job_alone(job: Job, wrong: Wrong) -> None:
    ledger.claim(job.pk, worker="alive")
    wrong(HOUR)
    assert reap()[0] == 0
    job.refresh_from_db()
    assert (job.state, job.worker) == (JobState.RUNNING, "alive")


def test_a_reaper_with_a_clock_behind_takes_a_lost_job_back(job: Job, wrong: Wrong) -> None:
    ledger.claim(job.pk, worker="gone")
    Job.objects.filter(pk=job.pk).update(lease_until=REAL_NOW() - timedelta(seconds=1))
    wrong(-HOUR)
    assert reap()[0] == 1


@pytest.mark.parametrize("offset", [HOUR, -HOUR])
def test_a_worker_with_a_wrong_clock_gets_a_lease_of_the_right_length(
    job: Job, wrong: Wrong, offset: timedelta
) -> None:
    wrong(offset)
    claimed = ledger.claim(job.pk, worker="w")
    assert claimed is not None and claimed.lease_until is not None and claimed.lease_token
    in_s = (claimed.lease_until - REAL_NOW()).total_seconds()
    assert in_s == pytest.approx(settings.TESSERA_JOB_LEASE_S, abs=5)
    assert ledger.renew(job.pk, claimed.lease_token)
    ledger.end(ledger.held(job.pk, claimed.lease_token), job.pk, JobState.SUCCEEDED)
    job.refresh_from_db()
    assert job.started_at and job.finished_at
    assert job.started_at <= job.finished_at <= REAL_NOW() + timedelta(seconds=5)


def test_a_retry_set_by_a_clock_ahead_comes_at_its_time(job: Job, wrong: Wrong) -> None:
    wrong(HOUR)
    claimed = ledger.claim(job.pk, worker="w")
    assert claimed is not None and claimed.lease_token
    ledger.requeue(ledger.held(job.pk, claimed.lease_token), delay_s=20, message="again")
    job.refresh_from_db()
    assert job.not_before is not None
    assert (job.not_before - REAL_NOW()).total_seconds() == pytest.approx(20, abs=5)
    assert ledger.claim(job.pk, worker="w") is None, (
        "its time has not come, whatever this clock says"
    )


def test_an_unheard_job_of_a_machine_with_a_clock_ahead_is_rung(
    lab: Lab, kind: Callable[..., str], wrong: Wrong, monkeypatch: pytest.MonkeyPatch
) -> None:
    rung: list[Any] = []
    monkeypatch.setattr(
        "portal.jobs.worker.reaper.ring", lambda job_id, queue: rung.append(job_id) or True
    )
    name = kind(lambda context: None)
    wrong(HOUR)
    job = job_submit(kind=name, args={}, lab=lab, user=None)
    wrong(timedelta())
    Job.objects.filter(pk=job.pk).update(rung_at=None)
    reap()
    assert rung == [job.pk]


def test_a_sign_of_life_counts_whatever_the_readers_clock(wrong: Wrong, db: None) -> None:
    from portal.jobs.worker import heartbeat

    heartbeat.sign("w", "default")
    wrong(HOUR)
    assert workers_alive().count() == 1
    WorkerSign.objects.update(seen_at=REAL_NOW() - timedelta(minutes=2))
    wrong(-HOUR)
    assert workers_alive().count() == 0


def test_workers_that_are_gone_for_long_are_forgotten(db: None) -> None:
    from portal.jobs.services import signs_prune
    from portal.jobs.worker import heartbeat

    heartbeat.sign("old", "default")
    WorkerSign.objects.update(seen_at=REAL_NOW() - timedelta(days=8))
    heartbeat.sign("new", "default")
    assert signs_prune() == 1
    assert WorkerSign.objects.get().name == "new"

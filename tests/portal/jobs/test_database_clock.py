"""Leases and due times with wrong clocks of machines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from portal.jobs import claims
from portal.jobs.models import Job, JobState, WorkerHeartbeat
from portal.jobs.selectors.jobs import workers_alive
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
    monkeypatch.setattr("portal.jobs.worker.messages.send", lambda job: True)
    return job_submit(kind=kind(lambda context: None, title="x"), args={}, lab=lab, user=None)


HOUR = timedelta(hours=1)


def test_a_reaper_with_a_fast_clock_ignores_a_running_job(job: Job, wrong: Wrong) -> None:
    claims.claim(job.pk, worker="alive")
    wrong(HOUR)
    assert reap()[0] == 0
    job.refresh_from_db()
    assert (job.state, job.worker) == (JobState.RUNNING, "alive")


def test_a_reaper_with_a_slow_clock_requeues_a_lost_job(job: Job, wrong: Wrong) -> None:
    claims.claim(job.pk, worker="gone")
    Job.objects.filter(pk=job.pk).update(lease_until=REAL_NOW() - timedelta(seconds=1))
    wrong(-HOUR)
    assert reap()[0] == 1


@pytest.mark.parametrize("offset", [HOUR, -HOUR])
def test_a_lease_has_its_length_despite_a_wrong_clock(
    job: Job, wrong: Wrong, offset: timedelta
) -> None:
    wrong(offset)
    claimed = claims.claim(job.pk, worker="w")
    assert claimed is not None and claimed.lease_until is not None and claimed.lease_token
    in_s = (claimed.lease_until - REAL_NOW()).total_seconds()
    assert in_s == pytest.approx(settings.TESSERA_JOB_LEASE_S, abs=5)
    assert claims.renew_lease(job.pk, claimed.lease_token)
    claims.end_job(claims.leased_job(job.pk, claimed.lease_token), job.pk, JobState.SUCCEEDED)
    job.refresh_from_db()
    assert job.started_at and job.finished_at
    assert job.started_at <= job.finished_at <= REAL_NOW() + timedelta(seconds=5)


def test_a_retry_is_due_in_time_despite_a_fast_clock(job: Job, wrong: Wrong) -> None:
    wrong(HOUR)
    claimed = claims.claim(job.pk, worker="w")
    assert claimed is not None and claimed.lease_token
    claims.requeue(claims.leased_job(job.pk, claimed.lease_token), delay_s=20, message="again")
    job.refresh_from_db()
    assert job.not_before is not None
    assert (job.not_before - REAL_NOW()).total_seconds() == pytest.approx(20, abs=5)
    assert claims.claim(job.pk, worker="w") is None, (
        "its time has not come, whatever this clock says"
    )


def test_a_job_submitted_with_a_fast_clock_is_sent(
    lab: Lab, kind: Callable[..., str], wrong: Wrong
) -> None:
    name = kind(lambda context: None)
    wrong(HOUR)
    job = job_submit(kind=name, args={}, lab=lab, user=None)
    wrong(timedelta())
    assert reap() == (0, 1)
    job.refresh_from_db()
    assert job.sent_at is not None


def test_a_heartbeat_is_judged_by_the_clock_of_the_database(wrong: Wrong, db: None) -> None:
    from portal.jobs.worker import heartbeat

    heartbeat.write_heartbeat("w", "default")
    wrong(HOUR)
    assert workers_alive().count() == 1
    WorkerHeartbeat.objects.update(last_seen_at=REAL_NOW() - timedelta(minutes=2))
    wrong(-HOUR)
    assert workers_alive().count() == 0


def test_old_heartbeats_are_deleted(db: None) -> None:
    from portal.jobs.services import heartbeats_prune
    from portal.jobs.worker import heartbeat

    heartbeat.write_heartbeat("old", "default")
    WorkerHeartbeat.objects.update(last_seen_at=REAL_NOW() - timedelta(days=8))
    heartbeat.write_heartbeat("new", "default")
    assert heartbeats_prune() == 1
    assert WorkerHeartbeat.objects.get().name == "new"

"""Jobs of older and newer releases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from portal.core.tasks import REGISTRY
from portal.jobs import claims
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_submit
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab

pytestmark = pytest.mark.django_db
Kind = Callable[..., str]


def _upgrade(args: dict[str, Any], version: int) -> dict[str, Any]:
    assert version == 1
    return {"item_id": args["slide_id"]}


def test_arguments_of_the_last_release_are_upgraded(lab: Lab, kind: Kind) -> None:
    got: list[str] = []

    def prepare(context: Any, *, item_id: str) -> None:
        got.append(item_id)

    name = kind(prepare, version=2, upgrade=_upgrade)
    new = job_submit(kind=name, args={"item_id": "b"}, lab=lab, user=None)
    old = job_submit(kind=name, args={"slide_id": "a"}, lab=lab, user=None)
    Job.objects.filter(pk=old.pk).update(payload_version=1)
    assert job_run(old.pk) and job_run(new.pk)
    assert got == ["a", "b"]
    assert not Job.objects.exclude(state=JobState.SUCCEEDED).exists()


def test_a_job_of_the_next_release_waits_for_newer_workers(lab: Lab, kind: Kind) -> None:
    name = kind(lambda context: None)
    job = job_submit(kind=name, args={"new": 1}, lab=lab, user=None)
    Job.objects.filter(pk=job.pk).update(payload_version=2)
    assert job_run(job.pk) is False
    job.refresh_from_db()
    assert (job.state, job.attempts) == (JobState.QUEUED, 0)


def test_an_unknown_kind_fails_only_after_a_timeout(lab: Lab, kind: Kind) -> None:
    name = kind(lambda context: None)
    job = job_submit(kind=name, args={}, lab=lab, user=None)
    del REGISTRY[name]
    assert job_run(job.pk) is False
    assert Job.objects.get(pk=job.pk).state == JobState.QUEUED
    Job.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(hours=2))
    assert job_run(job.pk) is True
    job.refresh_from_db()
    assert (job.state, job.error_code) == (JobState.FAILED, "unknown-kind")


def test_a_later_version_needs_an_upgrade(kind: Kind) -> None:
    with pytest.raises(ValueError, match="later"):
        kind(lambda context: None, version=2)


def test_jobs_of_a_stopped_worker_are_released_without_an_attempt(lab: Lab, kind: Kind) -> None:
    name = kind(lambda context: None)
    jobs = [job_submit(kind=name, args={}, lab=lab, user=None) for _ in range(2)]
    mine = claims.claim(jobs[0].pk, worker="host:1")
    claims.claim(jobs[1].pk, worker="host:2")
    assert mine is not None and mine.lease_token is not None
    assert claims.release(claims.jobs_run_by(["host:1"]), message="stopped") == 1
    states = {job.pk: (job.state, job.attempts) for job in Job.objects.all()}
    assert states == {jobs[0].pk: (JobState.QUEUED, 0), jobs[1].pk: (JobState.RUNNING, 1)}
    assert not claims.renew_lease(mine.pk, mine.lease_token), "who was stopped has lost its lease"

"""Reads of jobs."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from portal.jobs.models import Job
from portal.jobs.selectors.jobs import job_latest_for
from portal.jobs.services import job_submit
from portal.labs.models import Lab, User
from tests.portal.jobs.conftest import Kind


def test_only_the_newest_job_of_each_target_is_read(
    lab: Lab, annotator: User, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, targets = kind(lambda context: None), [uuid.uuid4(), uuid.uuid4()]
    jobs = [
        [job_submit(kind=name, args={}, lab=lab, user=annotator) for _ in range(3)] for _ in targets
    ]
    for target, its_jobs in zip(targets, jobs, strict=True):
        ids = [job.pk for job in its_jobs]
        Job.objects.filter(pk__in=ids).update(target_type="slide", target_id=target)
    read: list[uuid.UUID] = []
    from_db = Job.from_db

    def counting(*args: Any) -> Job:
        job = from_db(*args)
        read.append(job.pk)
        return job

    monkeypatch.setattr(Job, "from_db", counting)
    for user in (None, annotator):
        read.clear()
        latest = job_latest_for(target_type="slide", target_ids=targets, user=user)
        newest = {target: its_jobs[-1].pk for target, its_jobs in zip(targets, jobs, strict=True)}
        assert {target: job.pk for target, job in latest.items()} == newest
        assert sorted(read) == sorted(newest.values())

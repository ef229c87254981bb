"""Temporary folders of killed and running attempts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from portal.jobs import claims
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_submit
from portal.jobs.worker.reaper import reap
from portal.jobs.worker.scratch import scratch_make
from portal.labs.models import Lab
from tests.portal.jobs.conftest import Kind

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(lab: Lab, kind: Kind) -> Job:
    return job_submit(kind=kind(lambda context: None), args={}, lab=lab, user=None)


def start(job: Job) -> Path:
    """The folder of an attempt, with what it wrote."""
    assert claims.claim(job.pk, worker="gone") is not None
    folder = scratch_make(job.pk)
    (folder / "evidence.jpg").write_bytes(b"a name")
    return folder


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, JobState.QUEUED),
        ({"attempts": 3}, JobState.FAILED),
        ({"cancel_requested": True}, JobState.CANCELLED),
    ],
)
def test_the_folder_of_a_killed_attempt_is_removed(
    job: Job, storage: Path, fields: dict[str, Any], state: JobState
) -> None:
    folder = start(job)
    past = timezone.now() - timedelta(seconds=1)
    Job.objects.filter(pk=job.pk).update(lease_until=past, **fields)
    reap()
    job.refresh_from_db()
    assert (job.state, folder.exists()) == (state, False)


def test_the_folder_of_a_running_attempt_remains(job: Job, storage: Path) -> None:
    folder = start(job)
    reap()
    assert (folder / "evidence.jpg").exists()

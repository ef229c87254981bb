"""Time limits of jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portal.core.tasks import REGISTRY
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_submit
from portal.jobs.worker import limits
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab

Kind = Callable[..., str]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(2, "2 seconds"), (90, "90 seconds"), (1800, "30 minutes"), (14400, "4 hours")],
)
def test_durations_are_formatted(seconds: float, words: str) -> None:
    assert limits.duration_text(seconds) == words


def test_every_kind_has_a_time_limit(settings: Any) -> None:
    kinds = {kind for kind, spec in REGISTRY.items() if spec.function.__module__[:6] == "portal"}
    assert len(kinds) >= 7
    assert kinds - set(settings.TESSERA_JOB_LIMITS_S) == set()


@pytest.mark.django_db(transaction=True)
def test_a_job_fails_at_its_limit_and_its_process_is_killed(
    lab: Lab, kind: Kind, settings: Any, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[list[Path]] = []
    is_killed = threading.Event()

    def kill() -> None:
        killed.append([*(storage / "scratch").iterdir()])
        is_killed.set()

    monkeypatch.setattr(limits, "kill_process", kill)

    def silent(context: Any) -> None:
        with context.scratch() as folder:
            (folder / "half").write_text("half")
            is_killed.wait(20)

    name = kind(silent, title="Wait for nothing")
    settings.TESSERA_JOB_LIMITS_S = {name: 0.5}
    job = job_submit(kind=name, args={}, lab=lab, user=None)
    job_run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error_code, job.attempts) == (JobState.FAILED, "time-limit", 1)
    assert job.error_message.startswith("Stopped after 0.5 seconds, the longest that “Wait for")
    assert killed == [[]], "the scratch folder was removed before the process was ended"


@pytest.mark.django_db(transaction=True)
def test_a_job_that_ends_in_time_stops_its_heartbeat(lab: Lab, kind: Kind, settings: Any) -> None:
    name = kind(lambda context: None)
    settings.TESSERA_JOB_LIMITS_S = {name: 20.0}
    job = job_submit(kind=name, args={}, lab=lab, user=None)
    job_run(job.pk)
    assert not [thread for thread in threading.enumerate() if thread.name == f"lease-{job.pk}"]
    assert Job.objects.get(pk=job.pk).state == JobState.SUCCEEDED

"""Trimming of freed memory."""

from __future__ import annotations

import pytest

from portal.jobs.services import job_submit
from portal.jobs.worker import memory, runner
from portal.labs.models import Lab

pytestmark = pytest.mark.django_db


def test_memory_is_trimmed_after_a_job_once_a_minute(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    trimmed: list[int] = []
    now = 1000.0
    monkeypatch.setattr(memory.time, "monotonic", lambda: now)
    freed = memory.MemoryTrimmer()
    freed.trim = trimmed.append
    monkeypatch.setattr(runner, "TRIMMER", freed)
    for _ in range(3):
        runner.job_run(job_submit(kind="index_build", args={}, lab=lab, user=None).pk)
        now += memory.TRIM_EVERY_S / 2
    assert trimmed == [0, 0]

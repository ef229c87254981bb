from __future__ import annotations

from typing import Any

import pytest

from portal.core import tasks


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "REGISTRY", {})


def work(context: tasks.JobContext, **ids: Any) -> None:
    """Nothing."""


def test_a_task_is_known_by_its_kind_with_its_choices() -> None:
    assert tasks.job_task("slide_ingest", queue="gpu", max_attempts=5)(work) is work
    spec = tasks.REGISTRY["slide_ingest"]
    assert (spec.queue, spec.max_attempts, spec.retry_on) == ("gpu", 5, (OSError,))


def test_an_unknown_queue_is_refused() -> None:
    with pytest.raises(ValueError, match="queue"):
        tasks.job_task("slide_ingest", queue="fast")


def test_two_modules_cannot_share_a_kind() -> None:
    def other(context: tasks.JobContext, **ids: Any) -> None:
        """Nothing."""

    other.__module__ = "portal.elsewhere.tasks"
    tasks.job_task("slide_ingest")(work)
    tasks.job_task("slide_ingest")(work)  # imported twice
    with pytest.raises(ValueError, match="registered"):
        tasks.job_task("slide_ingest")(other)

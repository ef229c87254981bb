"""A job that takes its time, writes down each attempt, and has one effect."""

from __future__ import annotations

import os
import time
from pathlib import Path

from portal.core.models import Event
from portal.core.tasks import JobContext, task


@task("count_slowly", max_attempts=6, backoff_s=0.1)
def count_slowly(context: JobContext, *, name: str, steps: int, log: str) -> dict[str, str]:
    """Count, a tenth of a second a step; then the one effect that must not be doubled."""
    with Path(log).open("a") as lines:
        lines.write(f"{name} {os.getpid()} {os.getppid()}\n")
    for step in range(steps):
        context.progress(step, steps, f"step {step}")
        time.sleep(0.1)
    with context.effect():
        Event.objects.create(name="effect", payload={"name": name})
    return {"name": name}

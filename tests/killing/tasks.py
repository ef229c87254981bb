"""A job that takes its time, writes down each attempt, and has one effect."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path

from portal.core.models import Event
from portal.core.tasks import JobContext, JobResult, job_task


@job_task("count_slowly", max_attempts=6, backoff_s=0.1)
def count_slowly(context: JobContext, *, name: str, steps: int, log: str) -> JobResult:
    """Count, a tenth of a second a step; then the one effect that must not be doubled."""
    _attempt(name, log)
    for step in range(steps):
        context.progress(step, steps, f"step {step}")
        time.sleep(0.1)
    with context.effect():
        Event.objects.create(name="effect", payload={"name": name})
    return {"name": name}


@job_task("sleep_for_ever", max_attempts=3)
def sleep_for_ever(context: JobContext, *, name: str, steps: int, log: str) -> None:
    """Report nothing, hear nobody."""
    _attempt(name, log)
    while True:
        signal.pause()


@job_task("block_for_ever", max_attempts=2)
def block_for_ever(context: JobContext, *, name: str, steps: int, log: str) -> None:
    """Hold the interpreter's lock for ever: not even a thread of this process runs."""
    _attempt(name, log)
    library = ctypes.PyDLL(None)  # whose functions keep the lock; asleep they cost no processor
    while True:
        library.sleep(60)


def _attempt(name: str, log: str) -> None:
    with Path(log).open("a") as lines:
        lines.write(f"{name} {os.getpid()} {os.getppid()}\n")

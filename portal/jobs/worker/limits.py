"""Time limits of attempts.

The heartbeat thread fails a job that exceeds the limit of its kind and kills the process. A task
that never releases the GIL stops that thread too: its lease expires, another worker takes the job
over, and a watchdog timer that needs no GIL, restarted at each heartbeat, ends the process.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys

from django.conf import settings

WATCHDOG_LEASES = 4  # three heartbeats a lease; a slow machine does not miss a dozen


def limit_s(kind: str) -> float:
    """Time limit of one attempt at a job of this kind, in seconds."""
    return float(settings.TESSERA_JOB_LIMITS_S.get(kind, settings.TESSERA_JOB_LIMIT_S))


def watchdog_s() -> float:
    """Time without a heartbeat after which the watchdog ends the process, in seconds."""
    return float(WATCHDOG_LEASES * settings.TESSERA_JOB_LEASE_S)


def start_watchdog(after_s: float) -> None:
    """End this process after ``after_s``, with its stacks on stderr, unless called again."""
    if sys.__stderr__ is not None:
        faulthandler.dump_traceback_later(after_s, exit=True, file=sys.__stderr__)


def stop_watchdog() -> None:
    """Cancel the watchdog."""
    faulthandler.cancel_dump_traceback_later()


def kill_process() -> None:
    """Kill this process and its children; the pool starts another."""
    os.kill(os.getpid(), signal.SIGKILL)


def duration_text(seconds: float) -> str:
    """Format a duration: ``90 seconds``, ``30 minutes``, ``4 hours``."""
    for size, name in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size and seconds % size == 0:
            return f"{seconds / size:g} {name}"
    return f"{seconds:g} seconds"

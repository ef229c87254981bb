"""How long an attempt may take, and how its process is ended.

Two nets. The heartbeat's thread ends a job that passed the limit of its kind, and kills the
process. A task that never lets go of the interpreter's lock stops that thread as well; its lease
expires and another worker takes the job over. A timer that needs no lock, set again at each
heartbeat, then ends the deaf process.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys

from django.conf import settings

SILENT_LEASES = 4  # three heartbeats a lease: a dozen missed is more than a slow machine


def limit_s(kind: str) -> float:
    """Seconds that one attempt at a job of this kind may take."""
    return float(settings.TESSERA_JOB_LIMITS_S.get(kind, settings.TESSERA_JOB_LIMIT_S))


def silence_s() -> float:
    """Seconds without a heartbeat's thread after which the process is ended."""
    return float(SILENT_LEASES * settings.TESSERA_JOB_LEASE_S)


def exit_when_silent(after_s: float) -> None:
    """End this process after that time, with its stacks on stderr, unless called again."""
    if sys.__stderr__ is not None:
        faulthandler.dump_traceback_later(after_s, exit=True, file=sys.__stderr__)


def exit_no_more() -> None:
    """Cancel ``exit_when_silent``: the job is over."""
    faulthandler.cancel_dump_traceback_later()


def end_process() -> None:
    """Kill this process; the pool replaces it, children die with it."""
    os.kill(os.getpid(), signal.SIGKILL)


def in_words(seconds: float) -> str:
    """``90 seconds``, ``30 minutes``, ``4 hours``."""
    for size, name in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size and seconds % size == 0:
            return f"{seconds / size:g} {name}"
    return f"{seconds:g} seconds"

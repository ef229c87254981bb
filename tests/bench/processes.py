"""Memory and processor seconds of the portal's processes, from /proc."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class Usage:
    """One look.

    Attributes:
        mib, seconds: by role, web or worker.
        own_mib: of each process (its id and role), what it shares with no other and no file.
        machine_busy: processor seconds of all processes since the start of the machine.
        own_seconds: of this process, the load generator.
    """

    at: float
    mib: dict[str, float]
    seconds: dict[str, float]
    machine_busy: float
    own_seconds: float
    own_mib: dict[tuple[int, str], float]


def usage_of(pid: int) -> Usage:
    """The descendants of ``pid``. Shared pages count in parts (Pss)."""
    mib: defaultdict[str, float] = defaultdict(float)
    own_mib: dict[tuple[int, str], float] = {}
    seconds: defaultdict[str, float] = defaultdict(float)
    for child, role in _descendants(pid, "web"):
        try:
            rollup = Path(f"/proc/{child}/smaps_rollup").read_text()
            stat = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        mib[role] += _mib(rollup, "Pss")
        own_mib[child, role] = _mib(rollup, "Pss_Anon")
        seconds[role] += (int(stat[11]) + int(stat[12])) / TICKS
    usage = resource.getrusage(resource.RUSAGE_SELF)
    fields = [int(ticks) for ticks in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    busy = (sum(fields[:8]) - fields[3] - fields[4]) / TICKS
    spent = usage.ru_utime + usage.ru_stime
    return Usage(time.monotonic(), dict(mib), dict(seconds), busy, spent, own_mib)


def _mib(rollup: str, field: str) -> float:
    return int(rollup.partition(f"\n{field}:")[2].split()[0]) / 1024


def processor_seconds(usage: list[Usage]) -> float:
    """Processor seconds of the load generator between the first and the last sample."""
    return usage[-1].own_seconds - usage[0].own_seconds


def _descendants(pid: int, role: str) -> list[tuple[int, str]]:
    processes: list[tuple[int, str]] = []
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return processes
    for child in children:
        try:
            command = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        its = _role(command) or role
        processes += [(int(child), its), *_descendants(int(child), its)]
    return processes


def _role(command: bytes) -> str:
    if b"celery" in command or b"reaper" in command:
        return "worker"
    return ""


def restart_as_web_process() -> None:
    """Restart the running program with as many threads for NumPy and FAISS as ``manage.py web``."""
    if not os.environ.keys() >= ONE_THREAD.keys():
        os.execve(sys.executable, sys.orig_argv, os.environ | ONE_THREAD)

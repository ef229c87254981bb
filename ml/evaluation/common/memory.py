"""Peak memory of a process."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_mib() -> float:
    """Largest resident memory of this process, without its parent's, MiB.

    On Linux from its status: ``ru_maxrss`` includes the parent's memory before the exec.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except FileNotFoundError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1024**2 if sys.platform == "darwin" else 1024)
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024

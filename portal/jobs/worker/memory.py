"""Return memory that jobs have freed to the operating system.

glibc's malloc keeps what numpy, torch and libvips free, in fragments between blocks in use. This is
no leak, but the process appears to grow with each kind of job.
"""

from __future__ import annotations

import ctypes
import time

TRIM_EVERY_S = 60.0  # a trim takes some milliseconds, and the next job allocates the pages again


class MemoryTrimmer:
    """Calls ``malloc_trim`` at most once in ``TRIM_EVERY_S``."""

    def __init__(self) -> None:
        self.trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
        self._last_s = float("-inf")

    def trim_after_job(self) -> None:
        """Trim the heap unless that was done recently; does nothing without glibc."""
        now = time.monotonic()
        if self.trim is not None and now - self._last_s >= TRIM_EVERY_S:
            self._last_s = now
            self.trim(0)


TRIMMER = MemoryTrimmer()

"""Memory that jobs have freed, given back to the machine.

What numpy, torch and libvips free stays with malloc, in pieces between what is in use: no leak, yet
the process looks larger with each kind of job it has done.
"""

from __future__ import annotations

import ctypes
import time

EVERY_S = 60.0  # a trim takes some milliseconds, and the next job asks for pages anew


class FreedMemory:
    """What this process has freed and still holds."""

    def __init__(self) -> None:
        self.trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
        self._last_s = float("-inf")

    def give_back(self) -> None:
        """Call after a job; does nothing within ``EVERY_S`` of the last time, or without glibc."""
        now = time.monotonic()
        if self.trim is not None and now - self._last_s >= EVERY_S:
            self._last_s = now
            self.trim(0)


FREED = FreedMemory()

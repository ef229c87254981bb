"""Small chores that every installation needs daily; the reaper's process runs them.

A chore must be safe to run at any time and twice: two reapers may both run it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

EVERY_S = 24 * 3600.0  # what the chores delete has lain about for days
FIRST_AFTER_S = 3600.0  # not while the portal starts
_CHORES: dict[str, Callable[[], object]] = {}
_EACH_PASS: dict[str, Callable[[], object]] = {}
_BESIDE: dict[str, Callable[[threading.Event], None]] = {}


def daily(name: str, chore: Callable[[], object]) -> None:
    """Register a chore; call it from ``AppConfig.ready``."""
    _CHORES[name] = chore


def each_pass(name: str, chore: Callable[[], object]) -> None:
    """Register a chore for every pass of the reaper, seconds apart: it must cost a query or two."""
    _EACH_PASS[name] = chore


def beside(name: str, work: Callable[[threading.Event], None]) -> None:
    """Register work that goes on in a thread of the reaper's process until its event is set."""
    _BESIDE[name] = work


def beside_start(stop: threading.Event) -> list[threading.Thread]:
    """Start that work. Where a thread of it ends, ``stop`` is set: a process that does half of its
    work must end, so that whoever watches it starts it again.
    """

    def run(work: Callable[[threading.Event], None]) -> None:
        try:
            work(stop)
        finally:
            stop.set()

    threads = [
        threading.Thread(target=run, args=(work,), name=name, daemon=True)
        for name, work in _BESIDE.items()
    ]
    for thread in threads:
        thread.start()
    return threads


def run_each_pass() -> None:
    """Run those chores; what the database refuses is the caller's to log."""
    for chore in _EACH_PASS.values():
        chore()


class Calendar:
    """When chores are due in this process."""

    def __init__(self, *, now_s: float | None = None) -> None:
        self._due_s = (time.monotonic() if now_s is None else now_s) + FIRST_AFTER_S

    def run_due(self, *, now_s: float | None = None) -> bool:
        """Run every chore if the day is over. An ``OSError`` of one does not stop the others."""
        now_s = time.monotonic() if now_s is None else now_s
        if now_s < self._due_s:
            return False
        self._due_s = now_s + EVERY_S
        for name, chore in _CHORES.items():
            try:
                logger.info("housekeeping: %s: %s", name, chore())
            except OSError:
                logger.exception("housekeeping: %s failed; it runs again tomorrow", name)
        return True

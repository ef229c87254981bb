"""Small chores that every installation needs daily; the reaper's process runs them.

A chore must be safe to run at any time and twice: two reapers may both run it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

from portal.core.errors import PortalError

logger = logging.getLogger(__name__)

EVERY_S = 24 * 3600.0  # what the chores delete has lain about for days
AGAIN_S = 600.0  # after a failure: a full disk or a restarted database may be well again by then
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
    """Run each of those chores, whatever another raises; the caller gets what the last raised."""
    with ExitStack() as chores:
        for chore in reversed(_EACH_PASS.values()):
            chores.callback(chore)


class Calendar:
    """When each chore is due in this process."""

    def __init__(self, *, now_s: float | None = None) -> None:
        self._first_s = (time.monotonic() if now_s is None else now_s) + FIRST_AFTER_S
        self._due_s: dict[str, float] = {}

    def run_due(self, *, now_s: float | None = None) -> bool:
        """Run what is due; returns whether anything was. What fails is due again soon.

        Raises:
            DatabaseError: of a chore, after all others ran: the caller must know that it was away.
        """
        now_s = time.monotonic() if now_s is None else now_s
        due = [name for name in _CHORES if self._due_s.get(name, self._first_s) <= now_s]
        with ExitStack() as chores:  # each is called, whatever those before it raise
            for name in reversed(due):
                chores.callback(self._run, name, now_s)
        return bool(due)

    def _run(self, name: str, now_s: float) -> None:
        self._due_s[name] = now_s + AGAIN_S
        try:
            logger.info("housekeeping: %s: %s", name, _CHORES[name]())
        except (OSError, PortalError):
            logger.exception("housekeeping: %s failed; it is tried again soon", name)
        else:
            self._due_s[name] = now_s + EVERY_S

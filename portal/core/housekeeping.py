"""Daily chores, run by the reaper.

A chore must be idempotent, because two reapers may both run it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack

from portal.core.errors import PortalError
from portal.core.registry import Registry

logger = logging.getLogger(__name__)

EVERY_S = 24 * 3600.0  # chores delete data that is days old
AGAIN_S = 600.0  # after a failure, such as a full disk or a restarting database
FIRST_AFTER_S = 3600.0  # not while the portal starts up
Chore = Callable[[], object]

DAILY: Registry[str, Chore] = Registry()
EACH_PASS: Registry[str, Chore] = Registry()
"""Chores of every pass of the reaper, seconds apart; they must not need more than a few queries."""
daily = DAILY.register
each_pass = EACH_PASS.register


def run_each_pass() -> None:
    """Run the chores of a pass, each also if others raise; the last exception is raised."""
    with ExitStack() as chores:
        for _, chore in reversed(EACH_PASS.items()):
            chores.callback(chore)


class Calendar:
    """Schedule of the daily chores in this process."""

    def __init__(self, *, now_s: float | None = None) -> None:
        self._first_s = (time.monotonic() if now_s is None else now_s) + FIRST_AFTER_S
        self._due_s: dict[str, float] = {}

    def run_due(self, *, now_s: float | None = None) -> bool:
        """Run due chores and reschedule them, failed ones soon; returns whether any was due.

        Raises:
            DatabaseError: A chore raised it; the others have run.
        """
        now_s = time.monotonic() if now_s is None else now_s
        chores_due = [
            (name, chore)
            for name, chore in DAILY.items()
            if self._due_s.get(name, self._first_s) <= now_s
        ]
        with ExitStack() as chores:  # each is called even if one before it raises
            for name, chore in reversed(chores_due):
                chores.callback(self._run, name, chore, now_s)
        return bool(chores_due)

    def _run(self, name: str, chore: Chore, now_s: float) -> None:
        self._due_s[name] = now_s + AGAIN_S
        try:
            logger.info("housekeeping: %s: %s", name, chore())
        except (OSError, PortalError):
            logger.exception("housekeeping: %s failed; it is tried again soon", name)
        else:
            self._due_s[name] = now_s + EVERY_S

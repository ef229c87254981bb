"""Kills at random, makes clocks jump, fills the disk."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from tests.chaos.portal import Portal

PAUSED_S = 13.0  # longer than the lease of 10 s and a pass of the reaper


class Monkey:
    """One seed, one order of events; the times depend on the machine.

    Each kind comes once before any comes again, so that a short run knows many.
    """

    def __init__(self, portal: Portal, rng: random.Random) -> None:
        self.portal, self.rng = portal, rng
        self.did: Counter[str] = Counter()
        self.log: list[str] = []
        self.began = time.monotonic()
        self._actions: list[tuple[int, str, Callable[[], bool]]] = [
            (3, "kill web process", lambda: self._kill("web")),
            (3, "kill worker process", lambda: self._kill("worker-child")),
            (2, "kill worker", lambda: self._kill("worker")),
            (1, "kill reaper", lambda: self._kill("reaper")),
            (1, "kill whole tree", self._kill_tree),
            (2, "kill broker", self._kill_redis),
            (2, "kill database", self._kill_postgres),
            (1, "pause worker process", self._pause),
            (2, "jump a clock", self._jump),
            (1, "fill the disk", self._fill),
        ]
        self._first = rng.sample(self._actions, len(self._actions))

    def act(self) -> None:
        """One mischief."""
        weights = [weight for weight, _, _ in self._actions]
        if self._first:
            _, name, action = self._first.pop()
        else:
            _, name, action = self.rng.choices(self._actions, weights)[0]
        if action():
            self.did[name] += 1
            self.log.append(f"{time.monotonic() - self.began:6.1f} s  {name}")

    def rest(self) -> None:
        """Clocks are right again, servers run, the disk has room."""
        self.portal.clock.write_text("{}")
        (self.portal.storage / "filler").unlink(missing_ok=True)

    def _kill(self, role: str) -> bool:
        pids = self.portal.pids(role)
        if not pids:
            return False
        with suppress(ProcessLookupError):
            os.kill(self.rng.choice(pids), signal.SIGKILL)
        return True

    def _kill_tree(self) -> bool:
        self.portal.tree.kill()
        self.portal.tree.wait()
        time.sleep(self.rng.uniform(0.2, 2))  # the length of the outage, as below
        self.portal.start()
        return True

    def _kill_redis(self) -> bool:
        self.portal.redis.kill()
        time.sleep(self.rng.uniform(0.2, 4))
        self.portal.redis.start()
        self.portal.redis.wait()
        return True

    def _kill_postgres(self) -> bool:
        self.portal.postgres.kill()
        time.sleep(self.rng.uniform(0.2, 4))
        self.portal.postgres.start()
        self.portal.postgres.wait()
        return True

    def _pause(self) -> bool:
        """Longer than a lease, so that its job is given to another; then it wakes up."""
        pids = self.portal.pids("worker-child")
        if not pids:
            return False
        pid = self.rng.choice(pids)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(PAUSED_S)
            os.kill(pid, signal.SIGCONT)
        return True

    def _jump(self) -> bool:
        """The clock of web, worker or reaper is hours off from now on."""
        roles = ("web", "worker", "reaper")
        offsets = {role: self.rng.choice((0, 7200, -7200, 600, -600)) for role in roles}
        self.portal.clock.write_text(json.dumps(offsets))
        return True

    def _fill(self) -> bool:
        """No byte is left on the volume of the storage for a while."""
        if not self.portal.has_volume:
            return False
        filler = self.portal.storage / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"\0" * 2**20)
        time.sleep(self.rng.uniform(2, 6))  # the time without room
        filler.unlink(missing_ok=True)
        return True

"""Processes of a worker that are killed while they wait."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from portal.jobs.worker.pool import KillablePool


@pytest.fixture
def pool() -> Iterator[KillablePool]:
    made = KillablePool(2)
    yield made
    made.terminate()
    made.join()


@pytest.mark.timeout(60)
def test_whoever_is_killed_while_waiting_the_others_work_on(pool: KillablePool) -> None:
    assert pool.apply_async(os.getppid).get(timeout=20) == os.getpid()
    for _ in range(3):  # both, of which one holds the lock, and both again
        waiting = {process.pid for process in pool._pool}
        for pid in waiting:
            os.kill(pid, signal.SIGKILL)
        while waiting & {process.pid for process in pool._pool} or len(pool._pool) < 2:
            time.sleep(0.05)
        assert pool.apply_async(os.getppid).get(timeout=20) == os.getpid()

"""A pool whose processes are killed while they wait: ``python -m`` and this module's name.

A process of its own: what it forks has none of the signals' handlers and pipes of a test run.
"""

from __future__ import annotations

import os
import signal
import time

from portal.jobs.worker.pool import KillablePool


def main() -> None:
    """Kill both, of which one holds the lock, and both again; each time the others work on."""
    pool = KillablePool(2)
    assert pool.apply_async(os.getppid).get(timeout=20) == os.getpid()
    for _ in range(3):
        waiting = {process.pid for process in pool._pool}
        for pid in waiting:
            os.kill(pid, signal.SIGKILL)
        while waiting & {process.pid for process in pool._pool} or len(pool._pool) < 2:
            time.sleep(0.05)
        assert pool.apply_async(os.getppid).get(timeout=20) == os.getpid()
    pool.terminate()
    pool.join()


if __name__ == "__main__":
    main()

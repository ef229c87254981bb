"""Kill the processes of a pool; run by ``python -m`` to inherit nothing of a test run."""

from __future__ import annotations

import os
import signal
from queue import SimpleQueue
from typing import Any

from portal.jobs.worker.workarounds import KillablePool


def main() -> None:
    """Kill both processes, of which one holds the lock, three times; their successors work."""
    started: SimpleQueue[Any] = SimpleQueue()
    pool = KillablePool(2, on_process_up=started.put)
    for _ in range(2):
        started.get(timeout=20)
    assert pool.apply_async(os.getppid).get(timeout=20) == os.getpid()
    for _ in range(3):
        for process in tuple(pool._pool):
            os.kill(process.pid, signal.SIGKILL)
        for _ in range(2):
            started.get(timeout=20)
        assert pool.apply_async(os.getppid).get(timeout=20) == os.getpid()
    pool.terminate()
    pool.join()


if __name__ == "__main__":
    main()

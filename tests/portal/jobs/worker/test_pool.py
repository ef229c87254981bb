"""Processes of a worker that are killed while they wait."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress


def test_whoever_is_killed_while_waiting_the_others_work_on() -> None:
    command = [sys.executable, "-m", "tests.portal.jobs.worker.killed_pool"]
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            assert process.wait(timeout=60) == 0
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

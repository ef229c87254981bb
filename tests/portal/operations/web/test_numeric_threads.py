"""Threads of NumPy and FAISS in a web process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
SCRIPT = """
import contextlib, io, os, sys
import manage
sys.argv = ["manage.py", "web", "--help"]
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    manage.main()
import faiss, numpy
numpy.linalg.solve(numpy.eye(500), numpy.ones(500))
print(len(os.listdir("/proc/self/task")), faiss.omp_get_max_threads())
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads in /proc")
def test_numeric_libraries_start_no_threads_in_a_web_process() -> None:
    env = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        cwd=ROOT, env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert answer.stdout.split() == ["1", "1"]

"""Peak memory of a process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from ml.evaluation.common.memory import peak_mib


@pytest.mark.slow
def test_the_peak_rises_by_allocated_memory() -> None:
    before = peak_mib()
    held = np.ones(int(before + 64) << 17)  # 8 bytes a number
    assert peak_mib() >= before + 60
    del held
    assert peak_mib() >= before + 60


def test_a_child_does_not_count_its_parents_memory() -> None:
    held = np.ones(256 << 17)
    code = "from ml.evaluation.common.memory import peak_mib; print(peak_mib())"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert float(run.stdout) < held.nbytes / 2**20

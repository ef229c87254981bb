"""A switch to another engine that is killed goes on where it stopped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.killing.switch_control import A_REQUEST, COUNT

pytest.importorskip("qdrant_client")
ROOT = Path(__file__).resolve().parents[2]


def started(action: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.killing.switch_control", action, str(folder)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.endurance
def test_a_killed_switch_goes_on_and_misses_nothing(tmp_path: Path) -> None:
    first = started("begin", tmp_path)
    assert first.stdout is not None
    seen = 0
    for line in first.stdout:
        seen += line == "put\n"
        if seen == 5:
            first.kill()
            break
    first.wait()
    assert seen == 5 and first.returncode != 0
    said = started("go-on", tmp_path).communicate(timeout=200)[0].splitlines()
    again = said.count("put")
    assert COUNT // A_REQUEST - 6 <= again <= COUNT // A_REQUEST - 4, "what was there stayed"
    assert any(f"{COUNT} checked, 0 missing, 0 orphans" in line for line in said), said
    assert json.loads(said[-1].removeprefix("told ")) == ["qdrant", COUNT]

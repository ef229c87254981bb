"""The process tree: what ends is started again, and nothing is left running."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from portal.config import supervision
from portal.config.processes import ChildProcess
from portal.config.supervision import ProcessTree, Restarts
from tests import databases

ROOT = Path(__file__).resolve().parents[3]
SLEEP = "import time; time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"


def _child(name: str, code: str) -> ChildProcess:
    return ChildProcess(name, [sys.executable, "-c", code])


def _is_gone(pid: int) -> bool:
    for _ in range(50):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_every_child_is_gone_afterwards_even_a_stubborn_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("portal.config.supervision.STOP_WAIT_S", 0.5)
    with ProcessTree([_child("a", SLEEP), _child("b", STUBBORN)], say=print) as tree:
        time.sleep(0.5)
        pids = [child.pid for child in tree.children.values()]
    assert all(_is_gone(pid) for pid in pids)


def test_a_child_has_a_group_but_no_session_of_its_own() -> None:
    """A terminal's Ctrl-C passes it by; its niceness counts against its siblings'.

    Linux may share the processor among sessions first (``sched_autogroup_enabled``).
    """
    with ProcessTree([_child("a", SLEEP)], say=print) as tree:
        pid = tree.children["a"].pid
        assert (os.getpgid(pid), os.getsid(pid)) == (pid, os.getsid(0))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "PAUSE_S", 0.01)
    monkeypatch.setattr(supervision, "LOOK_EVERY_S", 0.02)


def test_a_child_that_ends_is_started_again_and_the_others_go_on(
    tmp_path: Path, quick: None
) -> None:
    """The first two runs of the worker end badly; the third one stays."""
    said: list[str] = []
    runs = tmp_path / "runs"
    worker = (
        f"import pathlib, time; runs = pathlib.Path({str(runs)!r});"
        "runs.open('a').write('x'); print('run', len(runs.read_text()), flush=True);"
        "time.sleep(60) if len(runs.read_text()) == 3 else exit(3)"
    )
    # The tree has to be left from outside: a third process fails for good once the worker stays.
    ends = (
        f"import pathlib, time; runs = pathlib.Path({str(runs)!r})\n"
        "while not runs.exists() or len(runs.read_text()) < 3: time.sleep(0.02)\n"
        "raise SystemExit(7)"
    )
    processes = [_child("web", SLEEP), _child("worker", worker), _child("last", ends)]
    with ProcessTree(processes, say=said.append, log_folder=tmp_path) as tree:
        web = tree.children["web"].pid
        assert tree.wait() == 7
        assert tree.children["web"].pid == web and tree.children["web"].poll() is None
        assert tree.children["worker"].poll() is None
    assert [line for line in said if line.startswith("worker")] == [
        f"worker ended unexpectedly (exit code 3). See {tmp_path / 'worker.log'}. "
        f"Starting it again in {pause:g} s."
        for pause in (0.01, 0.02)
    ]
    assert (tmp_path / "worker.log").read_text().split() == ["run", "1", "run", "2", "run", "3"]


def test_a_child_that_fails_at_once_again_and_again_ends_the_tree(quick: None) -> None:
    said: list[str] = []
    with ProcessTree([_child("worker", "raise SystemExit(3)")], say=said.append) as tree:
        assert tree.wait() == 3
    assert len(said) == supervision.GIVE_UP_AFTER
    assert said[-1].endswith("It failed 6 times in a row: giving up.")


def test_a_killed_child_is_named_by_its_signal(quick: None) -> None:
    said: list[str] = []
    code = "import os; os.kill(os.getpid(), 9)"
    with ProcessTree([_child("worker", code)], say=said.append) as tree:
        assert tree.wait() == 1
    assert said[0].startswith("worker ended unexpectedly (signal SIGKILL).")


def test_pauses_grow_and_a_steady_run_counts_from_one_again() -> None:
    restarts = Restarts()
    assert [restarts.pause_s(1) for _ in range(5)] == [1, 2, 4, 8, 16]
    assert restarts.pause_s(31) == 1
    assert [restarts.pause_s(29) for _ in range(5)] == [2, 4, 8, 16, None]


@pytest.mark.slow
def test_ctrl_c_stops_the_portal_and_all_it_started(tmp_path: Path) -> None:
    env = os.environ | {
        "DJANGO_SETTINGS_MODULE": "portal.config.settings.development",
        "TESSERA_DATABASE_URL": databases.migrated(tmp_path / "db.sqlite3"),
        "TESSERA_STORAGE": str(tmp_path / "storage"),
        "TESSERA_BROKER_FOLDER": str(tmp_path / "broker"),
    }
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        portal = subprocess.Popen(
            [sys.executable, "-u", "manage.py", "serve", "--port", str(port)],
            cwd=ROOT,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert portal.stdout is not None
        lines: list[str] = []
        for line in portal.stdout:
            lines.append(line)
            if "Ctrl-C stops it" in line:
                break
        said = "".join(lines)
        assert f"Port {port} is taken; using" in said
        found = Path(f"/proc/{portal.pid}/task/{portal.pid}/children").read_text().split()
        assert len(found) >= 3, said
        portal.send_signal(signal.SIGINT)
        assert portal.wait(120) == 0
    assert all(_is_gone(int(pid)) for pid in found)

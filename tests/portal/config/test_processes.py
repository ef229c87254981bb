"""The process tree: a free port is found, and nothing is left running."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from portal.config.processes import ChildProcess, ProcessTree, free_port

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


def test_a_taken_port_gives_the_next_free_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert port < free_port("127.0.0.1", port) < port + 100


def test_every_child_is_gone_afterwards_even_a_stubborn_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("portal.config.processes.STOP_WAIT_S", 0.5)
    with ProcessTree([_child("a", SLEEP), _child("b", STUBBORN)], say=print) as tree:
        time.sleep(0.5)
        pids = [child.pid for child in tree.children.values()]
    assert all(_is_gone(pid) for pid in pids)


def test_a_child_that_ends_by_itself_ends_the_wait_and_is_named(tmp_path: Path) -> None:
    said: list[str] = []
    processes = [
        _child("web", SLEEP),
        _child("worker", "print('out of luck'); raise SystemExit(3)"),
    ]
    with ProcessTree(processes, say=said.append, log_folder=tmp_path) as tree:
        assert tree.wait() == 3
    assert "worker ended by itself (exit code 3)" in said[0]
    assert "out of luck" in (tmp_path / "worker.log").read_text()


@pytest.mark.slow
def test_ctrl_c_stops_the_portal_and_all_it_started(tmp_path: Path) -> None:
    env = os.environ | {
        "DJANGO_SETTINGS_MODULE": "portal.config.settings.development",
        "TESSERA_DATABASE_URL": f"sqlite:///{tmp_path / 'db.sqlite3'}",
        "TESSERA_STORAGE": str(tmp_path / "storage"),
        "TESSERA_BROKER_FOLDER": str(tmp_path / "broker"),
    }
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "-v", "0"], cwd=ROOT, env=env, check=True
    )
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
        assert portal.wait(30) == 0
    assert all(_is_gone(int(pid)) for pid in found)

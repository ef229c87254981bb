"""The process tree: what ends is started again, and nothing is left running."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from portal.operations import supervision
from portal.operations.processes import ChildProcess, is_listening
from portal.operations.supervision import ProcessTree, Restarts
from tests import databases
from tests.portal.operations.web.running import until
from tests.processes import has_exited

ROOT = Path(__file__).resolve().parents[3]
HANG = "import signal; signal.pause()"
STUBBORN = (
    "import pathlib, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "pathlib.Path({ready!r}).touch(); signal.pause()"
)


def _child(name: str, code: str) -> ChildProcess:
    return ChildProcess(name, [sys.executable, "-c", code])


def test_all_children_have_ended_after_stop(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("portal.operations.supervision.STOP_WAIT_S", 0.5)
    ready = tmp_path / "ready"
    stubborn = STUBBORN.format(ready=str(ready))
    with ProcessTree([_child("a", HANG), _child("b", stubborn)], say=print) as tree:
        until(ready.exists)
        pids = [child.pid for child in tree.children.values()]
    assert all(has_exited(pid, within_s=5) for pid in pids)


def test_a_child_has_a_process_group_but_no_session() -> None:
    """A terminal's Ctrl-C passes it by; its niceness counts against its siblings'.

    Linux may share the processor among sessions first (``sched_autogroup_enabled``).
    """
    with ProcessTree([_child("a", HANG)], say=print) as tree:
        pid = tree.children["a"].pid
        assert (os.getpgid(pid), os.getsid(pid)) == (pid, os.getsid(0))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "PAUSE_S", 0.01)
    monkeypatch.setattr(supervision, "POLL_S", 0.02)


def test_a_condition_is_waited_for_unless_a_child_keeps_failing(
    quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        with ProcessTree([_child("a", HANG)], say=print) as tree:
            assert tree.wait_until(lambda: is_listening(host, port)) is None
    monkeypatch.setattr(supervision, "GIVE_UP_AFTER", 1)
    with ProcessTree([_child("a", "raise SystemExit(3)")], say=print) as tree:
        assert tree.wait_until(lambda: is_listening(host, port)) == 3


@pytest.mark.slow
def test_a_child_that_ends_is_restarted_while_the_others_run(tmp_path: Path, quick: None) -> None:
    """The first two runs of the worker end badly; the third one stays."""
    messages: list[str] = []
    runs, third_run = tmp_path / "runs", tmp_path / "third_run"
    os.mkfifo(third_run)
    worker = (
        f"import pathlib, signal; runs = pathlib.Path({str(runs)!r})\n"
        "runs.open('a').write('x'); print('run', len(runs.read_text()), flush=True)\n"
        "if len(runs.read_text()) < 3: raise SystemExit(3)\n"
        f"gate = open({str(third_run)!r}, 'w')\n"
        "signal.pause()"
    )
    # The tree has to be left from outside: a third process fails for good once the worker stays.
    ends = f"open({str(third_run)!r}).close(); raise SystemExit(7)"
    processes = [_child("web", HANG), _child("worker", worker), _child("last", ends)]
    with ProcessTree(processes, say=messages.append, log_folder=tmp_path) as tree:
        web = tree.children["web"].pid
        assert tree.wait() == 7
        assert tree.children["web"].pid == web and tree.children["web"].poll() is None
        assert tree.children["worker"].poll() is None
    assert [line for line in messages if line.startswith("worker")] == [
        f"worker ended unexpectedly (exit code 3). See {tmp_path / 'worker.log'}. "
        f"Starting it again in {pause:g} s."
        for pause in (0.01, 0.02)
    ]
    assert (tmp_path / "worker.log").read_text().split() == ["run", "1", "run", "2", "run", "3"]


@pytest.mark.slow
def test_a_repeatedly_failing_child_ends_the_tree(quick: None) -> None:
    messages: list[str] = []
    with ProcessTree([_child("worker", "raise SystemExit(3)")], say=messages.append) as tree:
        assert tree.wait() == 3
    assert len(messages) == supervision.GIVE_UP_AFTER
    assert messages[-1].endswith("It failed 6 times in a row: giving up.")


def test_a_killed_child_is_named_by_its_signal(quick: None) -> None:
    messages: list[str] = []
    code = "import os; os.kill(os.getpid(), 9)"
    with ProcessTree([_child("worker", code)], say=messages.append) as tree:
        assert tree.wait() == 1
    assert messages[0].startswith("worker ended unexpectedly (signal SIGKILL).")


def test_pauses_grow_and_start_over_after_a_stable_run() -> None:
    restarts = Restarts()
    assert [restarts.pause_s(1) for _ in range(5)] == [1, 2, 4, 8, 16]
    assert restarts.pause_s(31) == 1
    assert [restarts.pause_s(29) for _ in range(5)] == [2, 4, 8, 16, None]


@pytest.mark.slow
def test_ctrl_c_stops_the_portal_and_its_children(tmp_path: Path) -> None:
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
        message = "".join(lines)
        assert f"Port {port} is taken; using" in message
        children = Path(f"/proc/{portal.pid}/task/{portal.pid}/children").read_text().split()
        assert len(children) >= 3, message
        portal.send_signal(signal.SIGINT)
        assert portal.wait(120) == 0
    assert all(has_exited(int(pid), within_s=5) for pid in children)

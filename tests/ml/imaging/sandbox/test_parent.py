"""The child process: what it may use, how its end reaches the caller."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from ml.errors import (
    CancelledError,
    CorruptFileError,
    LimitExceededError,
    MlError,
    TooLargeError,
    UnknownNameError,
)
from ml.imaging.sandbox.parent import run_limited
from ml.imaging.sandbox.policy import Limits
from tests.processes import has_exited


def _open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_result_and_progress_of_the_child_are_returned(child_module: str) -> None:
    steps: list[tuple[int, int, str]] = []
    reply = run_limited(
        f"{child_module}:answer", {"n": 3}, progress=lambda *step: steps.append(step)
    )
    assert reply["arguments"] == {"n": 3}
    assert reply["core"] == 0
    assert reply["group"]
    assert (1, 2, "half") in steps


def test_the_environment_of_the_child_contains_no_secrets(
    child_module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://user:secret@db/x")
    reply = run_limited(f"{child_module}:answer", {})
    assert "DATABASE_URL" not in reply["environment"]


@pytest.mark.parametrize("kind", [CorruptFileError, TooLargeError])
def test_an_ml_error_is_raised_again_with_its_text(child_module: str, kind: type[MlError]) -> None:
    with pytest.raises(kind, match=r"^this is why$"):
        run_limited(f"{child_module}:refuse", {"kind": kind.__name__})


def test_an_error_with_a_custom_constructor_is_raised_again(child_module: str) -> None:
    with pytest.raises(UnknownNameError, match=r"'x'.*a"):
        run_limited(f"{child_module}:refuse", {"kind": "UnknownNameError"})


def test_a_foreign_subclass_is_raised_as_its_nearest_ml_error(child_module: str) -> None:
    with pytest.raises(MlError, match="outside") as caught:
        run_limited(f"{child_module}:refuse_as_subclass", {})
    assert caught.value.code == "bad-input"


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS])
def test_a_crash_of_the_child_is_a_damaged_file(child_module: str, number: int) -> None:
    with pytest.raises(CorruptFileError, match="crashed"):
        run_limited(f"{child_module}:crash", {"number": int(number)})


def test_a_kill_by_the_system_raises_an_error_that_names_it(child_module: str) -> None:
    with pytest.raises(LimitExceededError, match="system"):
        run_limited(f"{child_module}:crash", {"number": int(signal.SIGKILL)})


@pytest.mark.slow
def test_a_hanging_child_is_killed_with_its_children(child_module: str, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with pytest.raises(LimitExceededError, match=r"\b2 s\b"):
        run_limited(
            f"{child_module}:hang",
            {"pid_path": str(pids)},
            writes=(tmp_path,),
            limits=Limits(wall_s=2),
        )
    for pid in map(int, pids.read_text().split()):
        assert has_exited(pid, within_s=5)


@pytest.mark.slow
def test_cpu_time_is_limited(child_module: str) -> None:
    with pytest.raises(LimitExceededError, match=r"\b1 s\b"):
        run_limited(f"{child_module}:spin", {}, limits=Limits(cpu_s=1, wall_s=120))


def test_memory_is_limited(child_module: str) -> None:
    with pytest.raises(LimitExceededError, match=r"1\.0 GiB"):
        run_limited(f"{child_module}:devour", {}, limits=Limits(memory_bytes=1024**3))


def test_the_size_of_written_files_is_limited(child_module: str, tmp_path: Path) -> None:
    limits = Limits(file_bytes=1024**2)
    with pytest.raises(OSError, match="too large"):
        run_limited(
            f"{child_module}:write_much",
            {"path": str(tmp_path / "out")},
            writes=(tmp_path,),
            limits=limits,
        )
    assert (tmp_path / "out").stat().st_size <= 1024**2


def test_cancelling_kills_the_child(child_module: str, tmp_path: Path) -> None:
    pids = tmp_path / "pids"

    def cancel(done: int, total: int, phase: str) -> None:
        if pids.exists() and pids.read_text():
            raise CancelledError("stopped by the user")

    with pytest.raises(CancelledError, match="user"):
        run_limited(
            f"{child_module}:hang", {"pid_path": str(pids)}, writes=(tmp_path,), progress=cancel
        )
    assert has_exited(int(pids.read_text().split()[0]), within_s=5)


def test_a_bug_in_the_child_carries_its_traceback(child_module: str) -> None:
    with pytest.raises(RuntimeError, match="KeyError: 'missing'"):
        run_limited(f"{child_module}:bug", {})


def test_a_silent_exit_is_reported(child_module: str) -> None:
    with pytest.raises(RuntimeError, match="status 3"):
        run_limited(f"{child_module}:exit_silently", {})


def test_no_descriptor_is_left_open(child_module: str) -> None:
    run_limited(f"{child_module}:answer", {})
    before = _open_descriptors()
    for _ in range(2):
        run_limited(f"{child_module}:answer", {})
        with pytest.raises(CorruptFileError):
            run_limited(f"{child_module}:crash", {"number": int(signal.SIGSEGV)})
    assert _open_descriptors() == before


def test_no_file_of_a_child_remains_in_the_temporary_folder(
    child_module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    run_limited(f"{child_module}:answer", {})
    with pytest.raises(CorruptFileError):
        run_limited(f"{child_module}:crash", {"number": int(signal.SIGSEGV)})
    assert list(scratch.iterdir()) == []

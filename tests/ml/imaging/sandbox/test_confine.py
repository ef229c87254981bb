"""Files, hosts and programs that a confined child can reach, for each mechanism of the kernel."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ml.imaging.sandbox import landlock, parent
from ml.imaging.sandbox.confine import MEANS, confine
from ml.imaging.sandbox.parent import confinement, run_limited
from ml.imaging.sandbox.policy import Confinement

_OF_FILES = (
    "read_other", "read_by_link", "list_other", "write_other", "append_other", "remove_other",
    "passwd", "parents_environment",
)  # fmt: skip


@pytest.fixture
def readable(tmp_path: Path) -> Path:
    """A file in the folder that the child is given."""
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "file").write_text("given")
    return tmp_path / "given" / "file"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A file next to that folder, as of another lab."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("secret")
    return tmp_path / "other" / "file"


def _means(monkeypatch: pytest.MonkeyPatch, *means: str) -> Confinement:
    """Let children use only these mechanisms; skips if the kernel lacks one."""
    monkeypatch.setattr(parent, "MEANS", means)
    report = confinement()
    wanted = next((name for name in means if name in ("landlock", "namespace")), "")
    if report.files != wanted or ("seccomp" in means and report.programs != "seccomp"):
        pytest.skip(f"this kernel has no {' with '.join(means)}")
    return report


@pytest.mark.parametrize(
    "means", [MEANS, ("namespace", "seccomp"), ("landlock",), ("namespace",)], ids="+".join
)
def test_a_child_opens_only_its_given_files(
    child_module: str,
    readable: Path,
    other: Path,
    monkeypatch: pytest.MonkeyPatch,
    means: tuple[str, ...],
) -> None:
    _means(monkeypatch, *means)
    answers = run_limited(
        f"{child_module}:attempt",
        {"path": str(readable), "other": str(other)},
        reads=(readable.parent,),
    )
    assert {name: answers[name] for name in ("read", "temporary", "late_import")} == {
        "read": "done", "temporary": "done", "late_import": "done",
    }  # fmt: skip
    assert [name for name in (*_OF_FILES, "tcp", "program") if answers[name] == "done"] == []
    assert other.read_text() == "secret"
    assert [path.name for path in other.parent.iterdir()] == ["file"]


def test_the_filter_leaves_no_socket_of_any_kind(
    child_module: str, readable: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _means(monkeypatch, "seccomp")
    answers = run_limited(
        f"{child_module}:attempt",
        {"path": str(readable), "other": str(other)},
        writes=(readable.parent, other.parent),
    )
    assert {answers[name] for name in ("tcp", "udp", "unix", "program")} == {"PermissionError"}


def test_the_same_attempts_succeed_without_confinement(
    child_module: str, readable: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the tests above: what they see refused would work."""
    monkeypatch.setattr(parent, "MEANS", ())
    assert confinement() == Confinement("", "", "")
    answers = run_limited(
        f"{child_module}:attempt",
        {"path": str(readable), "other": str(other)},
        reads=(readable.parent,),
    )
    assert {answers[name] for name in (*_OF_FILES, "udp", "program")} == {"done"}


@pytest.mark.slow
def test_a_folder_to_read_cannot_be_written_to(
    child_module: str, readable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for means in (MEANS, ("namespace", "seccomp")):
        _means(monkeypatch, *means)
        with pytest.raises(OSError, match=r"[Pp]ermission|[Rr]ead-only"):
            run_limited(
                f"{child_module}:write_much",
                {"path": str(readable.with_name("new"))},
                reads=(readable.parent,),
            )
        assert [path.name for path in readable.parent.iterdir()] == ["file"]


@pytest.mark.slow
def test_a_child_under_landlock_cannot_signal_other_processes(
    child_module: str, readable: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if landlock.version() < 6:
        pytest.skip("this kernel's Landlock does not hold signals back")
    _means(monkeypatch, "landlock")
    answers = run_limited(
        f"{child_module}:attempt",
        {"path": str(readable), "other": str(other)},
        reads=(readable.parent,),
    )
    assert answers["signal_parent"] == "PermissionError"


def test_a_process_with_threads_raises_an_error_instead_of_partial_confinement() -> None:
    free = threading.Event()
    thread = threading.Thread(target=free.wait)
    thread.start()
    try:
        with pytest.raises(RuntimeError, match="threads"):
            confine((), ())
    finally:
        free.set()
        thread.join()


def test_the_confinement_lists_its_mechanisms(monkeypatch: pytest.MonkeyPatch) -> None:
    means = _means(monkeypatch, *MEANS)
    assert means == Confinement(files="landlock", network="seccomp", programs="seccomp")
    assert means.is_complete
    assert not Confinement("landlock", "", "landlock").is_complete

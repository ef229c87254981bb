"""Start of a confined child, with its progress and result."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import ml.errors
from ml.errors import CorruptFileError, LimitExceededError, MlError
from ml.imaging.sandbox.confine import MEANS
from ml.imaging.sandbox.policy import Confinement, Limits
from ml.types import JsonObject, Progress, no_progress

MAX_REPLY_BYTES = 64 * 1024 * 1024  # a reply is small; this ends a child that floods the pipe
POLL_S = 0.25  # how soon a cancelled job ends its child
_PASSED_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
_CRASHES = (
    signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP,
    signal.SIGSYS,
)  # fmt: skip


def run_limited(
    target: str,
    arguments: Mapping[str, Any],
    *,
    reads: Sequence[Path] = (),
    writes: Sequence[Path] = (),
    limits: Limits | None = None,
    progress: Progress = no_progress,
) -> JsonObject:
    """Run ``target`` in a limited, confined child process and return its JSON result.

    Args:
        target: "package.module:function"; called with ``arguments`` and ``progress``, both by
            keyword; returns a JSON-able dict, whose shape is the caller's to check. Its module is
            loaded before the child is confined.
        arguments: JSON-able; paths as str, absolute.
        reads, writes: the files and folders that the child may open, as ``Confinement.files`` says.
            A folder to write to may be read too.
        progress: called with the child's progress at least four times a second; an exception
            (``CancelledError``) kills the child and is raised again.
    Raises:
        MlError: the same subclass and text as in the child.
        LimitExceededError: out of memory, CPU or wall time, killed, or too long a reply.
        CorruptFileError: a signal ended the child, as damaged files can crash a decoder.
        OSError: an operating system error in the child (a full disk): worth a retry.
        RuntimeError: a bug in the child; carries its traceback.
    """
    limits = limits or Limits()
    with _Child(target, arguments, limits, reads=reads, writes=writes) as child:
        for message in child.messages(progress):
            if "result" in message:
                result: JsonObject = message["result"]
                child.finish()
                return result
            if "error" in message:
                raise _rebuild_error(message["error"])
        raise child.death()


def confinement() -> Confinement:
    """Confinement of a child on this machine, determined by starting one."""
    with _Child("ml.imaging.sandbox.child:no_op", {}, Limits()) as child:
        for _ in child.messages(no_progress):
            if child.confined is not None:
                return child.confined
        raise child.death()


class _Child:
    """A child process with its pipe."""

    def __init__(
        self,
        target: str,
        arguments: Mapping[str, Any],
        limits: Limits,
        *,
        reads: Sequence[Path] = (),
        writes: Sequence[Path] = (),
    ) -> None:
        self.limits = limits
        self.confined: Confinement | None = None
        self.deadline = time.monotonic() + limits.wall_s
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self.scratch = Path(tempfile.mkdtemp(prefix="tessera-child-"))
        self.read_fd, write_fd = os.pipe()
        request = {
            "target": target,
            "arguments": dict(arguments),
            "limits": asdict(limits),
            "reads": [str(path.absolute()) for path in reads],
            "writes": [str(path.absolute()) for path in (*writes, self.scratch)],
            "means": MEANS,
            "parent": os.getpid(),
        }
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ml.imaging.sandbox", str(write_fd)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self.errors,
                pass_fds=(write_fd,),
                start_new_session=True,
                env=_environment(self.scratch),
            )
        finally:
            os.close(write_fd)
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):  # the child has ended; death() returns the cause
                self.process.stdin.write(json.dumps(request).encode())
                self.process.stdin.close()

    def messages(self, progress: Progress) -> Iterator[JsonObject]:
        """Messages until the pipe closes; passes progress on."""
        last: tuple[int, int, str] = (0, 0, "starting")
        pending = b""
        received = 0
        with selectors.DefaultSelector() as selector:
            selector.register(self.read_fd, selectors.EVENT_READ)
            while True:
                if time.monotonic() > self.deadline:
                    raise LimitExceededError(
                        f"opening the file took over {self.limits.wall_s:g} s and was stopped"
                    )
                if not selector.select(POLL_S):
                    progress(*last)
                    continue
                chunk = os.read(self.read_fd, 1 << 16)
                if not chunk:
                    return
                received += len(chunk)
                if received > MAX_REPLY_BYTES:
                    raise LimitExceededError("the description of the file is too long")
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    message: JsonObject = json.loads(line)
                    if "progress" in message:
                        last = _progress(message["progress"])
                        progress(*last)
                        continue
                    if "confined" in message:
                        self.confined = Confinement(**message["confined"])
                    yield message

    def finish(self) -> None:
        """Wait up to five seconds for the child to end without a signal."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)

    def death(self) -> Exception:
        """Exception for a child that ended without an answer."""
        code = self.process.wait()
        number = -code
        if number == signal.SIGXCPU:
            return LimitExceededError(
                f"opening the file took more than {self.limits.cpu_s} s of CPU time and was stopped"
            )
        if number == signal.SIGKILL:
            return LimitExceededError(
                "opening the file was stopped by the system, most likely for lack of memory"
            )
        if number in _CRASHES:
            name = signal.Signals(number).name
            return CorruptFileError(
                f"the decoder crashed on this file ({name}); it is damaged, or was made to crash "
                "the decoder"
            )
        self.errors.seek(0)
        trace = self.errors.read()[-4_000:].decode(errors="replace")
        return RuntimeError(f"the child process ended with status {code}:\n{trace}")

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.read_fd)
        self.errors.close()
        shutil.rmtree(self.scratch, ignore_errors=True)


def _environment(scratch: Path) -> dict[str, str]:
    passed = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    package_root = str(Path(ml.errors.__file__).resolve().parents[1])
    paths = [package_root, *(path for path in sys.path if path and Path(path).is_dir())]
    return passed | {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(scratch),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "VIPS_CONCURRENCY": "2",
        "MALLOC_ARENA_MAX": "2",
    }


def _progress(values: list[Any]) -> tuple[int, int, str]:
    return int(values[0]), int(values[1]), str(values[2])


def _rebuild_error(error: Mapping[str, Any]) -> Exception:
    name, message = str(error["type"]), str(error["message"])
    if name == "OSError":
        return OSError(int(error.get("errno") or 0), message)
    kind = getattr(ml.errors, name, None)
    if isinstance(kind, type) and issubclass(kind, MlError):
        rebuilt = kind.__new__(kind)
        rebuilt.args = (message,)
        return rebuilt
    return RuntimeError(message)

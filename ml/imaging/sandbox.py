"""Run one function on a file from a user in a child process that cannot harm the caller.

A fresh interpreter (never a fork) with limits on memory, CPU, wall time and file size, without core
dumps and without the caller's environment. It speaks JSON lines over a pipe; what it raises as an
``MlError`` is raised again here. The limits guard against damaged and hostile files, not against
hostile code: the function is ours.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import ml.errors
from ml.errors import CorruptFileError, LimitExceededError, MlError
from ml.types import Progress, no_progress

MAX_REPLY_BYTES = 64 * 1024 * 1024  # a reply is small; this ends a child that floods the pipe
POLL_S = 0.25  # how soon a cancelled job ends its child
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
_CRASHES = (
    signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP,
)  # fmt: skip
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass(frozen=True, slots=True)
class Limits:
    """What a child process may use.

    Attributes:
        memory_bytes: address space; the libraries themselves take about 0.6 GiB of it.
        cpu_s: CPU seconds of all its threads.
        wall_s: seconds from start to end.
        file_bytes: largest file it may write.
        open_files: file descriptors.
    """

    memory_bytes: int = 3 * 1024**3
    cpu_s: int = 1_800
    wall_s: float = 3_600.0
    file_bytes: int = 64 * 1024**3
    open_files: int = 256


def run_limited(
    target: str,
    arguments: Mapping[str, Any],
    *,
    limits: Limits | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Run ``target`` in a limited child process and return its JSON result.

    Args:
        target: "package.module:function"; called with ``arguments`` and ``progress``, both by
            keyword; returns a JSON-able dict.
        arguments: JSON-able; paths as str.
        progress: gets the child's progress, and at least four calls a second: what it raises
            (``CancelledError``) kills the child and is raised on.
    Raises:
        MlError: the same subclass and text as in the child.
        LimitExceededError: out of memory, CPU or wall time, or killed.
        CorruptFileError: the child crashed by a signal, as damaged files can make a decoder do.
        OSError: an operating system error in the child (a full disk): worth a retry.
        RuntimeError: a bug in the child; carries its traceback.
    """
    limits = limits or Limits()
    with _Child(target, arguments, limits) as child:
        for message in child.messages(progress):
            if "result" in message:
                result: dict[str, Any] = message["result"]
                child.finish()
                return result
            if "error" in message:
                raise _rebuilt(message["error"])
        raise child.death()


class _Child:
    """The process, its pipe and its end."""

    def __init__(self, target: str, arguments: Mapping[str, Any], limits: Limits) -> None:
        self.limits = limits
        self.deadline = time.monotonic() + limits.wall_s
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self.read_fd, write_fd = os.pipe()
        request = {
            "target": target,
            "arguments": dict(arguments),
            "limits": asdict(limits),
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
                env=_environment(),
            )
        finally:
            os.close(write_fd)
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):  # it died at once: death() says how
                self.process.stdin.write(json.dumps(request).encode())
                self.process.stdin.close()

    def messages(self, progress: Progress) -> Iterator[dict[str, Any]]:
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
                    message: dict[str, Any] = json.loads(line)
                    if "progress" in message:
                        last = _progress(message["progress"])
                        progress(*last)
                    else:
                        yield message

    def finish(self) -> None:
        """Give the child a moment to end by itself."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)

    def death(self) -> Exception:
        """Why the child ended without an answer."""
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
                f"the decoder crashed on this file ({name}); it is damaged, or made to do so"
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


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    own = str(Path(ml.errors.__file__).resolve().parents[1])
    paths = [own, *(path for path in sys.path if path and Path(path).is_dir())]
    return kept | {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "VIPS_CONCURRENCY": "2",
        "MALLOC_ARENA_MAX": "2",
    }


def _progress(values: list[Any]) -> tuple[int, int, str]:
    return int(values[0]), int(values[1]), str(values[2])


def _rebuilt(error: Mapping[str, Any]) -> Exception:
    name, message = str(error["type"]), str(error["message"])
    if name == "OSError":
        return OSError(int(error.get("errno") or 0), message)
    kind = getattr(ml.errors, name, None)
    if isinstance(kind, type) and issubclass(kind, MlError):
        rebuilt = kind.__new__(kind)
        rebuilt.args = (message,)
        return rebuilt
    return RuntimeError(message)


# --- the child ---------------------------------------------------------------------------------


def main() -> None:
    """Read the request from stdin, answer on the pipe whose number is the argument."""
    pipe = os.fdopen(int(sys.argv[1]), "wb", buffering=0)
    request = json.loads(sys.stdin.buffer.read())
    _restrict(request["limits"], request["parent"])

    def send(message: dict[str, Any]) -> None:
        pipe.write(json.dumps(message).encode() + b"\n")

    last_sent = 0.0

    def progress(done: int, total: int, phase: str) -> None:
        nonlocal last_sent
        now = time.monotonic()
        if now - last_sent > 0.1 or done >= total:
            last_sent = now
            send({"progress": [done, total, phase]})

    try:
        module, _, function = request["target"].partition(":")
        call = getattr(importlib.import_module(module), function)
        reply = {"result": call(**request["arguments"], progress=progress)}
    except MlError as error:
        reply = {"error": {"type": _public_name(type(error)), "message": str(error)}}
    except MemoryError:
        size = request["limits"]["memory_bytes"] / 1024**3
        message = f"opening the file needs more than {size:.1f} GiB of memory"
        reply = {"error": {"type": "LimitExceededError", "message": message}}
    except OSError as error:
        message = error.strerror or str(error)
        reply = {"error": {"type": "OSError", "message": message, "errno": error.errno}}
    send(reply)


def _public_name(kind: type[MlError]) -> str:
    """The nearest class that ``ml.errors`` defines."""
    return next(base.__name__ for base in kind.__mro__ if hasattr(ml.errors, base.__name__))


def _restrict(limits: Mapping[str, Any], parent: int) -> None:
    """Set this process' limits, and die with the parent (Linux)."""
    cpu, memory, files = int(limits["cpu_s"]), int(limits["memory_bytes"]), limits["file_bytes"]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 2))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(files), int(files)))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits["open_files"], limits["open_files"]))
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit(1)


if __name__ == "__main__":
    main()

"""Entry point of the confined child: apply limits, load the code, confine, then open the file."""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ml.errors
from ml.errors import MlError
from ml.imaging.sandbox.confine import confine

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PROGRESS_INTERVAL_S = 0.1  # smooth to watch, with few messages on the pipe


def main() -> None:
    """Read the request from stdin, answer on the pipe whose number is the argument."""
    pipe = os.fdopen(int(sys.argv[1]), "wb", buffering=0)
    request = json.loads(sys.stdin.buffer.read())
    _restrict(request["limits"], request["parent"])
    module, _, function = request["target"].partition(":")
    call = getattr(importlib.import_module(module), function)
    confined = confine(
        [Path(path) for path in request["reads"]],
        [Path(path) for path in request["writes"]],
        means=request["means"],
    )

    def send(message: Mapping[str, object]) -> None:
        pipe.write(json.dumps(message).encode() + b"\n")

    last_sent = 0.0

    def progress(done: int, total: int, phase: str) -> None:
        nonlocal last_sent
        now = time.monotonic()
        if now - last_sent > _PROGRESS_INTERVAL_S or done >= total:
            last_sent = now
            send({"progress": [done, total, phase]})

    send({"confined": asdict(confined)})
    try:
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


def no_op(*, progress: object) -> dict[str, object]:
    """Do nothing: target of ``confinement``, which only needs a confined child."""
    return {}


def _public_name(kind: type[MlError]) -> str:
    """Name of the nearest base class that ``ml.errors`` defines."""
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

"""Which GPU is asked for, and how much of it: read for torch and for FAISS alike."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ml.errors import BadInputError

VARIABLE = "TESSERA_DEVICE"
"""auto, cpu, cuda or cuda:N."""
MEMORY_VARIABLE = "TESSERA_GPU_MEMORY_GIB"
"""What one process may take of a GPU: several workers share one by it."""
COMPILE_VARIABLE = "TESSERA_COMPILE"
"""1: networks that run on a GPU are compiled at their first batch."""
PROCESSOR = "CPU"
LOOK_S = 120.0
"""torch and a driver take seconds to start, more where every worker starts at once."""


def gpu_asked(name: str | None, gpus: int) -> int | None:
    """The number of the GPU to use; None for the processor.

    Args:
        name: None takes that of the environment, else a GPU if there is one.
        gpus: how many can be used.
    Raises:
        BadInputError: another name, or a GPU that is not there.
    """
    name = name or os.environ.get(VARIABLE) or "auto"
    if name == "auto":
        return 0 if gpus else None
    if name == "cpu":
        return None
    kind, _, number = name.partition(":")
    if kind != "cuda" or not (number or "0").isdecimal():
        raise BadInputError(f"device: expected auto, cpu, cuda or cuda:N, got {name!r}")
    if int(number or 0) >= gpus:
        raise BadInputError(
            f"device: {name!r} was asked for, but this machine has {gpus} usable GPUs"
        )
    return int(number or 0)


@contextmanager
def device_asked(name: str | None) -> Iterator[None]:
    """Let the environment ask for this device within the block; None leaves it as it is."""
    before = os.environ.get(VARIABLE)
    if name is not None:
        os.environ[VARIABLE] = name
    try:
        yield
    finally:
        if before is not None:
            os.environ[VARIABLE] = before
        elif name is not None:
            os.environ.pop(VARIABLE, None)


def memory_bound_gib() -> float | None:
    """What ``TESSERA_GPU_MEMORY_GIB`` says; None if it says nothing.

    Raises:
        BadInputError: not a number above 0.
    """
    text = os.environ.get(MEMORY_VARIABLE)
    if not text:
        return None
    try:
        bound = float(text)
    except ValueError:
        bound = 0.0
    if not 0 < bound < float("inf"):
        raise BadInputError(f"{MEMORY_VARIABLE}: expected a number above 0, got {text!r}")
    return bound


def is_compiling() -> bool:
    """Whether ``TESSERA_COMPILE`` asks for compiled networks.

    Raises:
        BadInputError: neither 0 nor 1.
    """
    text = os.environ.get(COMPILE_VARIABLE) or "0"
    if text not in {"0", "1"}:
        raise BadInputError(f"{COMPILE_VARIABLE}: expected 0 or 1, got {text!r}")
    return text == "1"


def has_driver() -> bool:
    """Whether this machine has a driver for a GPU: without one nobody needs to look further."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def device_line() -> str:
    """What this machine's workers compute on, for people; torch is not loaded into this process.

    Whoever forks afterwards, as a pool of workers does, must not have begun to use a GPU: where
    there is a driver for one, a separate process looks.
    """
    if not has_driver():
        try:
            gpu_asked(None, 0)
        except BadInputError as error:
            return str(error)
        return PROCESSOR
    command = "from ml.networks.device import device_report; print(device_report())"
    try:
        found = subprocess.run(
            [sys.executable, "-c", command],
            capture_output=True,
            text=True,
            check=False,
            timeout=LOOK_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    lines = (found.stderr if found.returncode else found.stdout).strip().splitlines()
    said = lines[-1].removeprefix("ml.errors.BadInputError: ") if lines else "unknown"
    return PROCESSOR if said.startswith(PROCESSOR) else said

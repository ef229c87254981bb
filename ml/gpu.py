"""GPU selection and memory limit, read for torch and for FAISS alike."""

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
"""Environment variable with the GPU memory of one process, so that several workers can share a
GPU."""
COMPILE_VARIABLE = "TESSERA_COMPILE"
"""1: networks that run on a GPU are compiled at their first batch."""
PROCESSOR = "CPU"
LOOK_S = 120.0
"""Timeout: torch and a driver take seconds to start, longer if all workers start together."""


def select_gpu(name: str | None, gpus: int) -> int | None:
    """Select the number of the GPU to use; None for the CPU.

    Args:
        name: Device; None for that of the environment, or a GPU if there is one.
        gpus: Number of usable GPUs.
    Raises:
        BadInputError: Unknown name, or no such GPU.
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
            f"device: {name!r} was requested, but this machine has {gpus} usable GPUs"
        )
    return int(number or 0)


@contextmanager
def device_override(name: str | None) -> Iterator[None]:
    """Set the device in the environment within the block; None changes nothing."""
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
    """Value of ``TESSERA_GPU_MEMORY_GIB``; None if unset.

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
    """Return whether ``TESSERA_COMPILE`` asks for compiled networks.

    Raises:
        BadInputError: neither 0 nor 1.
    """
    text = os.environ.get(COMPILE_VARIABLE) or "0"
    if text not in {"0", "1"}:
        raise BadInputError(f"{COMPILE_VARIABLE}: expected 0 or 1, got {text!r}")
    return text == "1"


def has_driver() -> bool:
    """Return whether this machine has a driver for a GPU; without one, no other check is needed."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def device_line() -> str:
    """Describe the device of this machine's workers, without loading torch into this process.

    A process that forks later, such as a pool of workers, must not have initialised a GPU: where a
    driver is present, a separate process looks.
    """
    if not has_driver():
        try:
            select_gpu(None, 0)
        except BadInputError as error:
            return str(error)
        return PROCESSOR
    command = "from ml.networks.device import device_report; print(device_report())"
    try:
        completed = subprocess.run(
            [sys.executable, "-c", command],
            capture_output=True,
            text=True,
            check=False,
            timeout=LOOK_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    lines = (completed.stderr if completed.returncode else completed.stdout).strip().splitlines()
    message = lines[-1].removeprefix("ml.errors.BadInputError: ") if lines else "unknown"
    return PROCESSOR if message.startswith(PROCESSOR) else message

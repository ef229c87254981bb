"""Which GPU is asked for, and how much of it: read by torch's side and by FAISS' alike."""

from __future__ import annotations

import os

from ml.errors import BadInputError

VARIABLE = "TESSERA_DEVICE"
"""auto, cpu, cuda or cuda:N."""
MEMORY_VARIABLE = "TESSERA_GPU_MEMORY_GIB"
"""What one process may take of a GPU: several workers share one by it."""


def gpu_asked(name: str | None, gpus: int) -> int | None:
    """The number of the GPU to use; None for the processor.

    Args:
        name: without one that of the environment, else a GPU if there is one.
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
        raise BadInputError(f"device: {name!r} is asked for, this machine has {gpus} usable GPUs")
    return int(number or 0)


def memory_bound_gib() -> float | None:
    """What ``TESSERA_GPU_MEMORY_GIB`` says; None where it says nothing.

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

"""The device that large networks run on: ``TESSERA_DEVICE`` is auto, cpu, cuda or cuda:N."""

from __future__ import annotations

import os

import torch

from ml.errors import BadInputError

VARIABLE = "TESSERA_DEVICE"


def chosen_device(name: str | None = None) -> torch.device:
    """The device of that name; without one that of the environment, else a GPU if there is one.

    Raises:
        BadInputError: another name, or a GPU that is not there.
    """
    name = name or os.environ.get(VARIABLE) or "auto"
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        name = "cuda" if gpus else "cpu"
    kind, _, number = name.partition(":")
    if name == "cpu":
        return torch.device("cpu")
    if kind != "cuda" or not (number or "0").isdecimal():
        raise BadInputError(f"device: expected auto, cpu, cuda or cuda:N, got {name!r}")
    if int(number or 0) >= gpus:
        raise BadInputError(f"device: {name!r} is asked for, this machine has {gpus} usable GPUs")
    return torch.device("cuda", int(number or 0))

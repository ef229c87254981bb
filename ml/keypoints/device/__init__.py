"""Matching on a GPU; results agree with the CPU within stated tolerances."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ml.gpu import VARIABLE, has_driver

if TYPE_CHECKING:
    from ml.networks.device import Compute


def gpu_compute() -> Compute | None:
    """Selected device if it is a GPU, else None.

    torch is imported only if there is a driver and the environment does not select the CPU.

    Raises:
        BadInputError: See ``select_compute``.
    """
    if "torch" not in sys.modules and not _may_have_one():
        return None
    from ml.networks.device import select_compute

    compute = select_compute()
    return compute if compute.batched else None


def _may_have_one() -> bool:
    is_allowed = os.environ.get(VARIABLE) != "cpu"
    return is_allowed and has_driver() and find_spec("torch") is not None

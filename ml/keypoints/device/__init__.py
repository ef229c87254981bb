"""Matching on a GPU: nearest neighbours and the alignment of patches, agreeing with the processor's
within the tolerances that each states."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ml.gpu import VARIABLE, has_driver

if TYPE_CHECKING:
    from ml.networks.device import Compute


def accelerator() -> Compute | None:
    """The chosen device where it is a GPU; None: the processor computes the reference.

    Without torch in this process it is loaded only where a driver says that there may be a GPU, and
    the environment does not ask for the processor.

    Raises:
        BadInputError: see ``chosen_compute``.
    """
    if "torch" not in sys.modules and not _may_have_one():
        return None
    from ml.networks.device import chosen_compute

    compute = chosen_compute()
    return compute if compute.batched else None


def _may_have_one() -> bool:
    is_asked = os.environ.get(VARIABLE) != "cpu"
    return is_asked and has_driver() and find_spec("torch") is not None

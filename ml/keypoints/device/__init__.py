"""Matching on a GPU: nearest neighbours and the alignment of patches, agreeing with the processor's
within the tolerances that each states."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ml.networks.device import Compute


def accelerator() -> Compute | None:
    """The chosen device where it is a GPU; None: the processor computes the reference.

    Without torch in this process nothing here has a network, and none is loaded to look for a GPU.

    Raises:
        BadInputError: see ``chosen_compute``.
    """
    if "torch" not in sys.modules:
        return None
    from ml.networks.device import chosen_compute

    compute = chosen_compute()
    return compute if compute.batched else None

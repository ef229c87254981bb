"""Nearest neighbours among descriptors on a device."""

from __future__ import annotations

import numpy as np
import torch

from ml.networks.device import Compute, in_batches
from ml.types import ArrayF32, ArrayI64

BLOCK_ROWS = 16_384
"""Rows of a compared at once: with 20,000 of b 1.3 GB of distances."""


def nearest_on(
    compute: Compute, a: ArrayF32, b: ArrayF32
) -> tuple[ArrayI64, ArrayF32, ArrayF32, ArrayI64]:
    """Nearest row of b, its distance, the second distance; and b's nearest row of a.

    Distances are float32, as ranks need it, and summed in another order than the processor's: of
    rows equally far another may be named, and a distance may lie off by a part in 10,000 of the
    longest descriptor.

    Args:
        a: (N, D), N >= 1. b: (M, D), M >= 1.
    """
    with torch.inference_mode():
        other = compute.sent(np.ascontiguousarray(b))
        length_b = other.square().sum(dim=1)
        rows = compute.sent(np.ascontiguousarray(a))
        back = torch.zeros(len(b), dtype=torch.int64, device=other.device)
        back_best = torch.full((len(b),), torch.inf, device=other.device)

        def step(part: slice) -> tuple[ArrayI64, ArrayF32, ArrayF32]:
            block = rows[part]
            lengths = block.square().sum(dim=1)[:, None] + length_b
            squared = torch.addmm(lengths, block, other.T, alpha=-2.0).clamp_(min=0.0)
            value, at = squared.min(dim=0)
            better = value < back_best
            back[better], back_best[better] = at[better] + part.start, value[better]
            found, names = squared.topk(min(2, len(b)), dim=1, largest=False)
            found = found.sqrt().cpu()
            second = found[:, 1] if len(b) > 1 else torch.full((len(found),), torch.inf)
            return names[:, 0].cpu().numpy(), found[:, 0].numpy(), second.numpy()

        parts = list(in_batches(step, len(a), BLOCK_ROWS))
    nearest, first, second = (np.concatenate(one) for one in zip(*parts, strict=True))
    return nearest, first, second, back.cpu().numpy()

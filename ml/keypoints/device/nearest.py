"""Nearest neighbours among descriptors on a device."""

from __future__ import annotations

import numpy as np
import torch

from ml.networks.device import Compute, in_batches
from ml.types import ArrayF32, ArrayI64

BLOCK_ROWS = 16_384
"""Rows of a per block: 1.3 GB of distances with 20,000 rows of b."""


def nearest_on(
    compute: Compute, a: ArrayF32, b: ArrayF32
) -> tuple[ArrayI64, ArrayF32, ArrayF32, ArrayI64]:
    """Nearest row of b, its distance, and the second distance for each row of a; nearest row of a.

    Distances are float32 and summed in another order than on the CPU: ties may differ, and
    distances by 1e-4 of the longest descriptor.

    Args:
        a: (N, D) float32, N >= 1.
        b: (M, D) float32, M >= 1.
    Returns:
        (N,) int64, (N,) float32 and (N,) float32 for rows of a, and (M,) int64 for rows of b.
    """
    with torch.inference_mode():
        rows_b = compute.to_device(np.ascontiguousarray(b))
        length_b = rows_b.square().sum(dim=1)
        rows_a = compute.to_device(np.ascontiguousarray(a))
        nearest_of_b = torch.zeros(len(b), dtype=torch.int64, device=rows_b.device)
        best_of_b = torch.full((len(b),), torch.inf, device=rows_b.device)

        def step(part: slice) -> tuple[ArrayI64, ArrayF32, ArrayF32]:
            block = rows_a[part]
            lengths = block.square().sum(dim=1)[:, None] + length_b
            squared = torch.addmm(lengths, block, rows_b.T, alpha=-2.0).clamp_(min=0.0)
            value, row = squared.min(dim=0)
            better = value < best_of_b
            nearest_of_b[better], best_of_b[better] = row[better] + part.start, value[better]
            distances, indices = squared.topk(min(2, len(b)), dim=1, largest=False)
            distances = distances.sqrt().cpu()
            second = distances[:, 1] if len(b) > 1 else torch.full((len(distances),), torch.inf)
            return indices[:, 0].cpu().numpy(), distances[:, 0].numpy(), second.numpy()

        parts = list(in_batches(step, len(a), BLOCK_ROWS))
    nearest, first, second = (np.concatenate(part) for part in zip(*parts, strict=True))
    return nearest, first, second, nearest_of_b.cpu().numpy()

"""The contrastive loss of ROI training."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ml.errors import ShapeError


def nt_xent(first: Tensor, second: Tensor, *, temperature: float) -> Tensor:
    """Normalised temperature-scaled cross entropy over two views of each example.

    Args:
        first, second: (M, D) projections; row i of both is the same example, M >= 2.
        temperature: tau, above 0.
    Returns:
        Scalar: mean of equation 1 over all 2M ordered positive pairs.
    Raises:
        ShapeError: the two differ in shape, or M < 2.
    Source: the retrieval paper, equation 1 (SimCLR).
    """
    if first.shape != second.shape or first.ndim != 2 or first.shape[0] < 2:
        raise ShapeError(
            "views",
            expected="two of (M, D), M >= 2",
            actual=f"{tuple(first.shape)}, {tuple(second.shape)}",
        )
    count = first.shape[0]
    unit = functional.normalize(torch.cat([first, second]), dim=1)
    logits = unit @ unit.T / temperature
    logits.fill_diagonal_(float("-inf"))
    partner = torch.arange(2 * count, device=unit.device).roll(count)
    return functional.cross_entropy(logits, partner)

"""From the tokens of a vision transformer to one vector."""

from __future__ import annotations

import torch
from torch import Tensor

from ml.errors import UnknownNameError

CLS = "cls"
MEAN = "mean"
CLS_MEAN = "cls_mean"
POOLS = (CLS, MEAN, CLS_MEAN)
"""The class token; the mean of the patch tokens; both, one after the other."""


def pooled(tokens: Tensor, pool: str, *, prefix: int) -> Tensor:
    """One vector an image; register tokens never count.

    Args:
        tokens: (B, N, E): class token, registers, patches.
        pool: one of ``POOLS``.
        prefix: class and register tokens before the patches.
    Returns:
        (B, E), twice as wide for ``CLS_MEAN``.
    Raises:
        UnknownNameError: another way.
    """
    if pool not in POOLS:
        raise UnknownNameError("pooling", pool, list(POOLS))
    first, mean = tokens[:, 0], tokens[:, prefix:].mean(dim=1)
    if pool == CLS_MEAN:
        return torch.cat([first, mean], dim=1)
    return first if pool == CLS else mean

"""Pooling of the tokens of a vision transformer."""

from __future__ import annotations

import torch
from torch import Tensor

from ml.errors import UnknownNameError

CLS = "cls"
MEAN = "mean"
CLS_MEAN = "cls_mean"
POOLS = (CLS, MEAN, CLS_MEAN)
"""The class token, the mean of the patch tokens, or both concatenated."""


def pool_tokens(tokens: Tensor, pool: str, *, prefix: int) -> Tensor:
    """Pool tokens to a vector per image; register tokens are ignored.

    Args:
        tokens: (B, N, E), class token, registers, patches.
        pool: One of ``POOLS``.
        prefix: Number of class and register tokens before the patches.
    Returns:
        (B, E), or (B, 2 E) for ``CLS_MEAN``.
    Raises:
        UnknownNameError: Unknown pooling.
    """
    if pool not in POOLS:
        raise UnknownNameError("pooling", pool, list(POOLS))
    first, mean = tokens[:, 0], tokens[:, prefix:].mean(dim=1)
    if pool == CLS_MEAN:
        return torch.cat([first, mean], dim=1)
    return first if pool == CLS else mean

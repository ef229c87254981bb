"""Contrastive loss of a batch of matching descriptors, without near points as negatives."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ml.errors import ShapeError


def near_mask(xy: Tensor, group: Tensor, *, radius_px: float) -> Tensor:
    """Mask of the other points of the same image within a radius.

    Args:
        xy: (M, 2) pixels of the first view.
        group: (M,) number of the image.
    Returns:
        (M, M) bool, False on the diagonal.
    """
    close = torch.cdist(xy, xy) < radius_px
    same = group[:, None] == group[None]
    return close & same & ~torch.eye(len(xy), dtype=torch.bool, device=xy.device)


def contrastive(a: Tensor, b: Tensor, ignored: Tensor, *, temperature: float) -> Tensor:
    """Cross entropy of choosing the partner among the batch, in both directions.

    Args:
        a, b: (M, D) of unit length; row i of both is one point.
        ignored: (M, M) bool, pairs that are not negatives.
        temperature: tau, above 0; the smaller, the more the hardest negatives count.
    Returns:
        Scalar: mean over the 2M rows of -log softmax(a_i b_j / tau) at j = i.
    Raises:
        ShapeError: a and b differ.
    """
    _check(a, b, ignored)
    logits = (a @ b.T / temperature).masked_fill(ignored, float("-inf"))
    target = torch.arange(len(a), device=a.device)
    forth = functional.cross_entropy(logits, target)
    return 0.5 * (forth + functional.cross_entropy(logits.T, target))


def _check(a: Tensor, b: Tensor, ignored: Tensor) -> None:
    if a.shape != b.shape or a.ndim != 2 or len(a) < 2:
        raise ShapeError(
            "descriptors",
            expected="two of (M, D), M >= 2",
            actual=f"{tuple(a.shape)}, {tuple(b.shape)}",
        )
    if tuple(ignored.shape) != (len(a), len(a)):
        raise ShapeError(
            "ignored", expected=f"({len(a)}, {len(a)})", actual=str(tuple(ignored.shape))
        )

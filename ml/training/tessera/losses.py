"""Losses over a batch of matching descriptors, with neighbours that are not negatives left out."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ml.errors import ShapeError


def near_mask(xy: Tensor, group: Tensor, *, radius_px: float) -> Tensor:
    """(M, M) bool: other points of the same image within a radius; False on the diagonal.

    Args:
        xy: (M, 2) pixels of the first view. group: (M,) number of the image.
    """
    close = torch.cdist(xy, xy) < radius_px
    same = group[:, None] == group[None]
    return close & same & ~torch.eye(len(xy), dtype=torch.bool, device=xy.device)


def hardest_triplet(a: Tensor, b: Tensor, ignored: Tensor, *, margin: float) -> Tensor:
    """Triplet loss with the hardest negative of the batch, from either view.

    Args:
        a, b: (M, D) of unit length; row i of both is one point.
        ignored: (M, M) bool, pairs that are not negatives.
    Returns:
        Scalar: mean of max(0, margin + d(a_i, b_i) - min_j d), over j not i and not ignored.
    Raises:
        ShapeError: a and b differ.
    Source: Mishchuk et al. 2017, equations 1 and 2 (HardNet).
    """
    _check(a, b, ignored)
    distance = torch.sqrt(torch.clamp(2.0 - 2.0 * (a @ b.T), min=1e-6))
    positive = distance.diagonal()
    left_out = ignored | torch.eye(len(a), dtype=torch.bool, device=a.device)
    negatives = distance.masked_fill(left_out, 4.0)
    hardest = torch.minimum(negatives.amin(dim=1), negatives.amin(dim=0))
    return torch.relu(margin + positive - hardest).mean()


def contrastive(a: Tensor, b: Tensor, ignored: Tensor, *, temperature: float) -> Tensor:
    """Cross entropy of naming the partner among the batch, in both directions.

    Args:
        a, b: (M, D) of unit length. ignored: (M, M) bool, pairs that are not negatives.
        temperature: tau, above 0; small ones look at the hardest negatives only.
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


def second_order(a: Tensor, b: Tensor, *, neighbours: int) -> Tensor:
    """How far the distances among first views differ from those among second views.

    Args:
        a, b: (M, D) of unit length. neighbours: nearest rows that count, of either view.
    Returns:
        Scalar: mean_i sqrt(sum_j (d(a_i, a_j) - d(b_i, b_j))^2), j near i in a or in b.
    Raises:
        ShapeError: a and b differ.
    Source: Tian et al. 2019, equation 3 (SOSNet).
    """
    _check(a, b, None)
    count = min(neighbours, len(a) - 1)
    own = torch.eye(len(a), dtype=torch.bool, device=a.device)
    d_a = torch.sqrt(torch.clamp(2.0 - 2.0 * (a @ a.T), min=1e-6))
    d_b = torch.sqrt(torch.clamp(2.0 - 2.0 * (b @ b.T), min=1e-6))
    near = torch.zeros(len(a), len(a), device=a.device)
    for distance in (d_a.detach(), d_b.detach()):
        index = distance.masked_fill(own, 9.0).topk(count, dim=1, largest=False).indices
        near.scatter_(1, index, 1.0)
    return torch.sqrt(((d_a - d_b).square() * near).sum(dim=1) + 1e-8).mean()


def _check(a: Tensor, b: Tensor, ignored: Tensor | None) -> None:
    if a.shape != b.shape or a.ndim != 2 or len(a) < 2:
        raise ShapeError(
            "descriptors",
            expected="two of (M, D), M >= 2",
            actual=f"{tuple(a.shape)}, {tuple(b.shape)}",
        )
    if ignored is not None and tuple(ignored.shape) != (len(a), len(a)):
        raise ShapeError(
            "ignored", expected=f"({len(a)}, {len(a)})", actual=str(tuple(ignored.shape))
        )

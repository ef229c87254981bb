"""Losses of the key point descriptors: adaptive triplets, contrast of two views."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from ml.errors import ShapeError


@dataclass(frozen=True, slots=True)
class TripletShares:
    """Shares of easy, semi-hard and hard triplets; they sum to 1."""

    easy: float
    semi_hard: float
    hard: float


def adaptive_triplet(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    hinge: bool = False,
    min_margin: float = 0.0,
) -> Tensor:
    """Triplet loss whose margin is half the squared distance of anchor and positive.

    As printed, without a hinge, negatives are pushed away without end; for features of unit length
    the loss is at least -4 a triplet. With ``hinge`` a triplet costs at least 0; as the margin
    vanishes with the distances, features in a single point are then a minimum too, which
    ``min_margin`` prevents.

    Args:
        anchor, positive, negative: (N, D), row i of each is triplet i.
    Returns:
        Scalar: the sum over the triplets.
    Raises:
        ShapeError: the three differ in shape.
    Source: adaptive-triplet-endoscopic-matching, equations 1 and 2; hinge and minimum margin
        are ours.
    """
    near, far = _squared_distances(anchor, positive, negative)
    loss = near - far + (near / 2).clamp(min=min_margin)
    return (loss.clamp(min=0) if hinge else loss).sum()


def hardest_triplets(anchor: Tensor, positive: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Choose the nearest feature of another triplet as negative of each triplet.

    Args:
        anchor, positive: (N, D) of unit length, N >= 2, row i of both is triplet i.
    Returns:
        anchor, positive, negative: (N, D) each. Anchor and positive are exchanged if the negative
        is nearer to the positive.
    Raises:
        ShapeError: the two differ in shape, or N < 2.
    Source: Mishchuk et al. 2017 (HardNet), section 3.1; the paper draws one at random.
    """
    if anchor.shape != positive.shape or anchor.ndim != 2 or len(anchor) < 2:
        actual = f"{tuple(anchor.shape)}, {tuple(positive.shape)}"
        raise ShapeError("triplets", expected="two of (N, D), N >= 2", actual=actual)
    count, both = len(anchor), torch.cat([anchor, positive])
    cosine = both.detach() @ both.detach().T
    same_point = torch.eye(count, dtype=torch.bool, device=anchor.device).repeat(2, 2)
    best, at = cosine.masked_fill(same_point, -torch.inf).max(dim=1)
    turned = best[count:] > best[:count]
    negative = both[torch.where(turned, at[count:], at[:count])]
    turned = turned[:, None]
    return torch.where(turned, positive, anchor), torch.where(turned, anchor, positive), negative


def triplet_shares(anchor: Tensor, positive: Tensor, negative: Tensor) -> TripletShares:
    """Shares of hard, semi-hard and easy triplets; ties are neither easy nor hard.

    Source: adaptive-triplet-endoscopic-matching, section 3.3.1.
    """
    near, far = _squared_distances(anchor.detach(), positive.detach(), negative.detach())
    hard = float((near > far).float().mean())
    easy = float((near + near / 2 < far).float().mean())
    return TripletShares(easy=easy, semi_hard=max(0.0, 1.0 - easy - hard), hard=hard)


def cross_view(first: Tensor, second: Tensor, *, temperature: float) -> Tensor:
    """Contrast of each node with all others of its mini-batch, in both views.

    The positive pair is only in the numerator of equation 5: the sum below runs over k != i in both
    of its parts, as printed, so the loss may be negative.

    Args:
        first, second: (..., n, D) projections, n >= 2 nodes a mini-batch; row i of both views is
            the same node.
        temperature: tau, above 0.
    Returns:
        Scalar: equation 6, averaged over the mini-batches.
    Raises:
        ShapeError: the two differ in shape, or n < 2.
    Source: graph-ssl-endoscopic-matching, equations 5 and 6.
    """
    if first.shape != second.shape or first.ndim < 2 or first.shape[-2] < 2:
        raise ShapeError(
            "views",
            expected="two of (..., n, D), n >= 2",
            actual=f"{tuple(first.shape)}, {tuple(second.shape)}",
        )
    a, b = functional.normalize(first, dim=-1), functional.normalize(second, dim=-1)
    across = a @ b.transpose(-1, -2) / temperature
    return 0.5 * (
        _one_way(a @ a.transpose(-1, -2) / temperature, across)
        + _one_way(b @ b.transpose(-1, -2) / temperature, across.transpose(-1, -2))
    )


class Projection(nn.Module):
    """Two-layer projection under the cosine of equation 5; dropped after training."""

    def __init__(self, dim: int, out_dim: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, out_dim))

    def forward(self, x: Tensor) -> Tensor:
        """(N, dim) to (N, out_dim)."""
        out: Tensor = self.layers(x)
        return out


def _one_way(within: Tensor, across: Tensor) -> Tensor:
    """Mean over i of equation 5 for anchors of one view; both (..., n, n) cosines over tau."""
    n = across.shape[-1]
    same_point = torch.eye(n, dtype=torch.bool, device=across.device)
    positive = across.diagonal(dim1=-2, dim2=-1)
    negatives = torch.cat(
        [within.masked_fill(same_point, -torch.inf), across.masked_fill(same_point, -torch.inf)], -1
    )
    return (torch.logsumexp(negatives, dim=-1) - positive).mean()


def _squared_distances(anchor: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    if not anchor.shape == positive.shape == negative.shape or anchor.ndim != 2:
        raise ShapeError(
            "triplets",
            expected="three of (N, D)",
            actual=", ".join(str(tuple(t.shape)) for t in (anchor, positive, negative)),
        )
    return (anchor - positive).square().sum(dim=1), (anchor - negative).square().sum(dim=1)

"""Losses of the descriptors of key points: adaptive triplets, contrast of two views, rivals."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from ml.errors import ShapeError

NEIGHBOURS = 8
"""Nearest neighbours whose distances both views should agree on (SOSNet, section 3.1)."""

ALPHA, MARGIN, NORM_SHARE = 2.0, 1.2, 0.1
"""Weight of the distance in the hybrid similarity, margin, weight of the lengths (HyNet, 4.1)."""

_SMALL = 1e-6
"""Keeps square roots differentiable at zero distance."""


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
    least_margin: float = 0.0,
) -> Tensor:
    """Triplet loss whose margin is half the squared distance of anchor and positive.

    As printed, without a hinge, every negative is pushed away for ever; features of unit length
    bound the loss by -4 a triplet. With ``hinge`` each triplet counts from 0 up; then all features
    in one point are a minimum too, for the margin vanishes with the distances. ``least_margin``
    keeps it from vanishing.

    Args:
        anchor, positive, negative: (N, D), row i of each is triplet i.
    Returns:
        Scalar: the sum over the triplets.
    Raises:
        ShapeError: the three differ in shape.
    Source: adaptive-triplet-endoscopic-matching, equations 1 and 2; the hinge and the least margin
        are ours.
    """
    near, far = _squared(anchor, positive, negative)
    loss = near - far + (near / 2).clamp(min=least_margin)
    return (loss.clamp(min=0) if hinge else loss).sum()


def hardest_triplets(anchor: Tensor, positive: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Triplets whose negative is the feature of another one nearest to the anchor or the positive.

    Args:
        anchor, positive: (N, D) of unit length, N >= 2, row i of both is triplet i.
    Returns:
        anchor, positive, negative: (N, D) each. The first two are exchanged where the negative is
        nearer to the positive.
    Raises:
        ShapeError: the two differ in shape, or N < 2.
    Source: Mishchuk et al. 2017 (HardNet), section 3.1; the paper draws one at random.
    """
    if anchor.shape != positive.shape or anchor.ndim != 2 or len(anchor) < 2:
        actual = f"{tuple(anchor.shape)}, {tuple(positive.shape)}"
        raise ShapeError("triplets", expected="two of (N, D), N >= 2", actual=actual)
    count, both = len(anchor), torch.cat([anchor, positive])
    cosine = both.detach() @ both.detach().T
    own = torch.eye(count, dtype=torch.bool, device=anchor.device).repeat(2, 2)
    best, at = cosine.masked_fill(own, -torch.inf).max(dim=1)
    turned = best[count:] > best[:count]
    negative = both[torch.where(turned, at[count:], at[:count])]
    turned = turned[:, None]
    return torch.where(turned, positive, anchor), torch.where(turned, anchor, positive), negative


def triplet_shares(anchor: Tensor, positive: Tensor, negative: Tensor) -> TripletShares:
    """How many triplets are hard, semi-hard and easy; ties are not easy, and not hard.

    Source: adaptive-triplet-endoscopic-matching, section 3.3.1.
    """
    near, far = _squared(anchor.detach(), positive.detach(), negative.detach())
    hard = float((near > far).float().mean())
    easy = float((near + near / 2 < far).float().mean())
    return TripletShares(easy=easy, semi_hard=max(0.0, 1.0 - easy - hard), hard=hard)


def cross_view(first: Tensor, second: Tensor, *, temperature: float) -> Tensor:
    """Contrast of each node with all others of its mini-batch, in both views.

    The positive pair stands above the line of equation 5 only: the sum below runs over k != i in
    both of its parts, as printed, so the loss may fall below zero.

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
    """The two-layer projection under the cosine of equation 5; dropped after training."""

    def __init__(self, dim: int, out_dim: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, out_dim))

    def forward(self, x: Tensor) -> Tensor:
        """(N, dim) to (N, out_dim)."""
        out: Tensor = self.layers(x)
        return out


def sosnet(first: Tensor, second: Tensor) -> Tensor:
    """Quadratic hinge against the hardest negative, and agreement of second-order distances.

    Args:
        first, second: (N, D), row i of both views is the same key point, N >= 2.
    Source: Tian et al. 2019 (SOSNet), equations 1 to 4.
    """
    a, b = functional.normalize(first, dim=1), functional.normalize(second, dim=1)
    across = distances(a, b)
    hinge = (1 + across.diagonal() - hardest(across, a, b)).clamp(min=0).square().mean()
    within_a, within_b = distances(a, a), distances(b, b)
    count = min(NEIGHBOURS + 1, len(a))
    near = torch.zeros_like(within_a, dtype=torch.bool)
    for side in (within_a, within_b):
        near.scatter_(1, side.detach().topk(count, dim=1, largest=False).indices, value=True)
    apart = ((within_a - within_b).square() * near).sum(dim=1)
    return hinge + (apart + _SMALL).sqrt().mean()


def hynet(first: Tensor, second: Tensor) -> Tensor:
    """Triplets by a hybrid of inner product and distance, and agreement of lengths.

    Args:
        first, second: as for ``sosnet``, not normalised.
    Source: Tian et al. 2020 (HyNet), equations 5 to 8.
    """
    a, b = functional.normalize(first, dim=1), functional.normalize(second, dim=1)
    across = distances(a, b)
    positive, negative = hybrid(across.diagonal()), hybrid(hardest(across, a, b))
    lengths = (first.norm(dim=1) - second.norm(dim=1)).square().mean()
    return (MARGIN + negative - positive).clamp(min=0).mean() + NORM_SHARE * lengths


def hybrid(distance: Tensor) -> Tensor:
    """Similarity of unit vectors at this distance; its steepest slope along their angle is 1."""
    angle = torch.linspace(0, torch.pi, 181)
    slope = ALPHA * torch.cos(angle / 2) + torch.sin(angle)
    cosine = 1 - distance.square() / 2
    return (ALPHA * (1 - distance) + cosine) / slope.max().to(distance)


def distances(a: Tensor, b: Tensor) -> Tensor:
    """(N, M) between rows of unit length."""
    return (2 - 2 * a @ b.T).clamp(min=_SMALL).sqrt()


def hardest(across: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """(N,) distance from each pair to the nearest other key point, of either view."""
    own = torch.eye(len(across), dtype=torch.bool, device=across.device)
    far = torch.inf
    sides = (
        across.masked_fill(own, far),
        across.T.masked_fill(own, far),
        distances(a, a).masked_fill(own, far),
        distances(b, b).masked_fill(own, far),
    )
    return torch.stack([side.min(dim=1).values for side in sides]).min(dim=0).values


RIVALS = {"sosnet": sosnet, "hynet": hynet}
"""Of the features themselves; ``contrast`` is of their projections."""


def _one_way(within: Tensor, across: Tensor) -> Tensor:
    """Mean over i of equation 5 for anchors of one view; both (..., n, n) cosines over tau."""
    n = across.shape[-1]
    own = torch.eye(n, dtype=torch.bool, device=across.device)
    positive = across.diagonal(dim1=-2, dim2=-1)
    negatives = torch.cat(
        [within.masked_fill(own, -torch.inf), across.masked_fill(own, -torch.inf)], -1
    )
    return (torch.logsumexp(negatives, dim=-1) - positive).mean()


def _squared(anchor: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    if not anchor.shape == positive.shape == negative.shape or anchor.ndim != 2:
        raise ShapeError(
            "triplets",
            expected="three of (N, D)",
            actual=", ".join(str(tuple(t.shape)) for t in (anchor, positive, negative)),
        )
    return (anchor - positive).square().sum(dim=1), (anchor - negative).square().sum(dim=1)

"""A matcher of two images' key points at once: attention within and across, optimal assignment."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class PairMatcherConfig:
    """Sizes of a ``PairMatcher``; SuperGlue has 256 numbers and nine layers of each kind."""

    dim: int = 128  # of the features
    heads: int = 4  # of each attention
    layers: int = 2  # of each kind, within and across in turn
    sinkhorn: int = 20  # rounds of the assignment


class PairMatcher(nn.Module):
    """Features and places of two sets of points to an assignment, with a bin for what has none.

    Source: Sarlin et al. 2020 (SuperGlue), section 3.
    """

    def __init__(self, config: PairMatcherConfig) -> None:
        super().__init__()
        self.config = config
        dim = config.dim
        self.position = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, dim))
        self.attention = nn.ModuleList(
            nn.MultiheadAttention(dim, config.heads, batch_first=True)
            for _ in range(2 * config.layers)
        )
        self.update = nn.ModuleList(
            nn.Sequential(nn.Linear(2 * dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))
            for _ in range(2 * config.layers)
        )
        self.last = nn.Linear(dim, dim)
        self.bin = nn.Parameter(torch.tensor(1.0))

    def forward(self, a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor]) -> Tensor:
        """Logarithms of the assignment.

        Args:
            a, b: (N, dim) features and (N, 2) positions in [-1, 1], (M, dim) and (M, 2).
        Returns:
            (N + 1, M + 1); the last row and column are the bins.
        """
        x, y = (
            nn.functional.normalize(features, dim=1)[None] + self.position(where)[None]
            for features, where in (a, b)
        )
        for number, (attend, update) in enumerate(zip(self.attention, self.update, strict=True)):
            of_x, of_y = (y, x) if number % 2 else (x, y)
            to_x, to_y = (
                attend(own, other, other, need_weights=False)[0]
                for own, other in ((x, of_x), (y, of_y))
            )
            x = x + update(torch.cat([x, to_x], dim=-1))
            y = y + update(torch.cat([y, to_y], dim=-1))
        scores = self.last(x)[0] @ self.last(y)[0].T / math.sqrt(self.config.dim)
        return assignment(scores, self.bin, rounds=self.config.sinkhorn)


def assignment(scores: Tensor, bin_score: Tensor, *, rounds: int) -> Tensor:
    """(N + 1, M + 1) logarithms: rows and columns of the N x M part and its bins sum to 1.

    Source: Sarlin et al. 2020, section 3.2: Sinkhorn in logarithms; the bins take what is left.
    """
    n, m = scores.shape
    full = torch.cat([scores, bin_score.expand(n, 1)], dim=1)
    full = torch.cat([full, bin_score.expand(1, m + 1)], dim=0)
    rows = torch.cat([scores.new_zeros(n), scores.new_tensor([math.log(max(m, 1))])])
    columns = torch.cat([scores.new_zeros(m), scores.new_tensor([math.log(max(n, 1))])])
    u, v = torch.zeros_like(rows), torch.zeros_like(columns)
    for _ in range(rounds):
        u = rows - torch.logsumexp(full + v[None], dim=1)
        v = columns - torch.logsumexp(full + u[:, None], dim=0)
    out: Tensor = full + u[:, None] + v[None]
    return out

"""Self-supervised schemes over two views: what is minimised, and what else has to be trained."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional

from ml.errors import UnknownNameError
from ml.networks.gcn import ProjectionHead
from ml.training.roi.losses import nt_xent

SCHEMES = ("simclr", "vicreg", "byol")
_BYOL_RATE = 0.99  # what the target network keeps of itself at each step


def vicreg(first: Tensor, second: Tensor) -> Tensor:
    """Variance, invariance and covariance of two views (M, D), weighted 25, 25, 1.

    Source: VICReg (Bardes, Ponce and LeCun 2022), equation 6 and its defaults.
    """
    invariance = functional.mse_loss(first, second)
    variance = torch.stack([_hinge(first), _hinge(second)]).mean()
    covariance = _off_diagonal(first) + _off_diagonal(second)
    return 25 * invariance + 25 * variance + covariance


def _hinge(x: Tensor) -> Tensor:
    return functional.relu(1 - (x.var(dim=0) + 1e-4).sqrt()).mean()


def _off_diagonal(x: Tensor) -> Tensor:
    centred = x - x.mean(dim=0)
    moment = centred.T @ centred / (len(x) - 1)
    return (moment.pow(2).sum() - moment.diagonal().pow(2).sum()) / x.shape[1]


class Scheme(nn.Module):
    """An encoder with whatever a scheme trains beside it.

    Args:
        name: one of ``SCHEMES``.
        encoder: (B, ...) to (B, dim).
    Raises:
        UnknownNameError: another name.
    """

    def __init__(  # noqa: PLR0917
        self, name: str, encoder: nn.Module, dim: int, hidden_dim: int, out_dim: int, tau: float
    ) -> None:
        super().__init__()
        if name not in SCHEMES:
            raise UnknownNameError("scheme", name, list(SCHEMES))
        self.name, self.tau = name, tau
        self.encoder = encoder
        self.head = _head(dim, hidden_dim, out_dim)
        if name == "byol":
            self.predictor = ProjectionHead(out_dim, hidden_dim, out_dim)
            self.target = copy.deepcopy(nn.Sequential(encoder, self.head)).requires_grad_(False)

    def forward(self, both: Tensor) -> Tensor:
        """Loss of (2B, ...) views; row i and row B + i are of the same patch."""
        projected = self.head(self.encoder(both))
        first, second = projected.chunk(2)
        if self.name == "simclr":
            return nt_xent(first, second, temperature=self.tau)
        if self.name == "vicreg":
            return vicreg(first, second)
        with torch.no_grad():
            aims = self.target(both).chunk(2)[::-1]
        wished = functional.normalize(torch.cat(aims), dim=1)
        found = functional.normalize(self.predictor(projected), dim=1)
        return 2 - 2 * (found * wished).sum(dim=1).mean()

    def after_step(self) -> None:
        """Let BYOL's target follow; nothing for the others."""
        if self.name != "byol":
            return
        online = nn.Sequential(self.encoder, self.head)
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), online.parameters(), strict=True):
                slow.lerp_(fast, 1 - _BYOL_RATE)


def _head(dim: int, hidden_dim: int, out_dim: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(dim, hidden_dim, bias=False),
        nn.BatchNorm1d(hidden_dim),
        nn.ReLU(),
        nn.Linear(hidden_dim, out_dim),
    )

"""What the steps of all schemes share: the gradient step, and its rate over a run."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ml.training.common.peers import peers


def descend(optimiser: torch.optim.Optimizer, loss: Tensor) -> float:
    """Take one step down the gradient of a scalar loss; returns the loss."""
    optimiser.zero_grad()
    loss.backward()
    peers().average(optimiser)
    optimiser.step()
    return float(loss.detach())


def stand_by(optimiser: torch.optim.Optimizer) -> None:
    """Take the step that peers take, where this process has nothing to learn from; alone: none."""
    if peers().world == 1:
        return
    optimiser.zero_grad()
    peers().average(optimiser)
    optimiser.step()


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of everything that is trained."""
    for group in optimiser.param_groups:
        group["lr"] = rate


def half_cosine(done: float, of: float = 1.0) -> float:
    """From 1 at ``done`` = 0 down to 0 at ``done`` = ``of``, flat at both ends."""
    return 0.5 * (1 + math.cos(math.pi * done / of))

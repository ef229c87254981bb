"""Gradient step shared by all schemes, and the learning rate over a run."""

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


def step_without_loss(optimiser: torch.optim.Optimizer) -> None:
    """Take part in the step of the other processes without a loss; nothing if there are none."""
    if peers().world == 1:
        return
    optimiser.zero_grad()
    peers().average(optimiser)
    optimiser.step()


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of all parameters."""
    for group in optimiser.param_groups:
        group["lr"] = rate


def half_cosine(step: float, last: float = 1.0) -> float:
    """Half a cosine, from 1 at ``step`` = 0 to 0 at ``step`` = ``last``."""
    return 0.5 * (1 + math.cos(math.pi * step / last))

"""Loss on held-out examples during a training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from ml.training.common.run import HELD_OUT, History

HELD_OUT_EVERY = 10
"""Steps between two evaluations, each of which costs about as much as a step."""


def record_held_out(history: History, number: int, loss: Callable[[], float]) -> None:
    """Record the held-out loss for step ``number``; in between, the last value is repeated."""
    values = history.setdefault(HELD_OUT, [])
    values.append(loss() if number % HELD_OUT_EVERY == 0 or not values else values[-1])


@contextmanager
def evaluating(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Put networks into evaluation mode without gradients; restore their modes afterwards."""
    before = [(module, module.training) for module in modules]
    for module, _ in before:
        module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, was in before:
            module.train(was)

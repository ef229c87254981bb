"""What held-out examples say while a training runs; looking does not change what is learned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from ml.training.common.run import HELD_OUT, History

WATCH_EVERY = 10
"""Steps from one look to the next where a step is short: a look costs about as much as a step."""


def watch(history: History, number: int, look: Callable[[], float]) -> None:
    """Record ``look`` for step ``number``; between two looks the last one stands."""
    seen = history.setdefault(HELD_OUT, [])
    seen.append(look() if number % WATCH_EVERY == 0 or not seen else seen[-1])


@contextmanager
def looking(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Networks in evaluation mode, without gradients; afterwards they are as before."""
    before = [(module, module.training) for module in modules]
    for module, _ in before:
        module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, was in before:
            module.train(was)

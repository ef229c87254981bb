"""Steps that do not fit into the memory of the device: taken with half the batch."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from ml.training.common.peers import peers

LEAST_BATCH = 2
"""Contrast needs another example."""


class Stepping(Protocol):
    """What a learner needs here; one whose batch may be halved has ``batch`` as well."""

    @property
    def optimiser(self) -> torch.optim.Optimizer:
        """Of the networks that are trained."""

    def step(self, number: int, history: dict[str, list[Any]]) -> float:
        """Take step ``number`` and return its loss."""


def step_that_fits(learner: Stepping, number: int, history: dict[str, list[Any]]) -> float:
    """Take a step; where it does not fit, and from then on, with half the batch.

    Each halving is recorded as ``batch``: the step and the new size. Among peers nothing is halved,
    since they count their batches together.

    Raises:
        torch.OutOfMemoryError: not even the least batch fits, or the scheme has none to halve.
    """
    while True:
        try:
            return learner.step(number, history)
        except torch.OutOfMemoryError:
            batch = getattr(learner, "batch", 0) // 2
            if batch < LEAST_BATCH or peers().world > 1:
                raise
            _set_batch(learner, batch)
            history.setdefault("batch", []).append([number, batch])
        learner.optimiser.zero_grad()
        torch.cuda.empty_cache()


def batch_as_before(learner: Stepping, history: dict[str, list[Any]]) -> None:
    """Give a resumed learner the batch size that fitted before."""
    for _, batch in history.get("batch", [])[-1:]:
        _set_batch(learner, batch)


def _set_batch(learner: Any, batch: int) -> None:
    learner.batch = batch

"""Smaller batches for steps that do not fit into the memory of the device."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from ml.training.common.peers import peers

MIN_BATCH = 2
"""Least batch: a contrastive loss needs another example."""


class Stepping(Protocol):
    """Interface of a learner; one whose batch may be halved has ``batch`` as well."""

    @property
    def optimiser(self) -> torch.optim.Optimizer:
        """Optimiser of the trained networks."""

    def step(self, number: int, history: dict[str, list[Any]]) -> float:
        """Take step ``number`` and return its loss."""


def step_that_fits(learner: Stepping, number: int, history: dict[str, list[Any]]) -> float:
    """Take a step, and halve the batch for this and later steps if it does not fit.

    Each halving is recorded as ``batch``: the step and the new size. Batches of several processes
    are not halved.

    Raises:
        torch.OutOfMemoryError: the least batch does not fit, or the scheme has no batch.
    """
    while True:
        try:
            return learner.step(number, history)
        except torch.OutOfMemoryError:
            batch = getattr(learner, "batch", 0) // 2
            if batch < MIN_BATCH or peers().world > 1:
                raise
            _set_batch(learner, batch)
            history.setdefault("batch", []).append([number, batch])
        learner.optimiser.zero_grad()
        torch.cuda.empty_cache()


def restore_batch(learner: Stepping, history: dict[str, list[Any]]) -> None:
    """Restore the batch size of a resumed run."""
    for _, batch in history.get("batch", [])[-1:]:
        _set_batch(learner, batch)


def _set_batch(learner: Any, batch: int) -> None:
    learner.batch = batch

"""Batches of the patch encoder's training, drawn in this process or by worker processes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import cv2
import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ml.training.common.peers import peers
from ml.training.roi.patches.blocks import Blocks
from ml.training.roi.patches.config import PatchTrainConfig
from ml.training.roi.patches.views import StainChange, draw_pair, draw_stains, restained

_CPU = torch.device("cpu")


class Batch(NamedTuple):
    """Two views of each of B examples.

    Attributes:
        views: (2B, 3, crop, crop) float32; row i and row B + i are of one example.
        patients: (B,) int64.
        organs: (B,) int64, -1 where it is not known.
    """

    views: Tensor
    patients: Tensor
    organs: Tensor


class Batches(Protocol):
    """Draws the batch of a step."""

    batch: int

    def __call__(self, step: int) -> Batch:
        """Two views of each of ``batch`` examples."""


class Draw(NamedTuple):
    """A batch before its stains are changed.

    Attributes:
        pixels: (2B, crop, crop, 3) uint8.
        patients, organs: (B,) int64, see ``Batch``.
        change: of the 2B views.
    """

    pixels: Tensor
    patients: Tensor
    organs: Tensor
    change: StainChange


class TissueBatches:
    """Batches of blocks of tissue, which depend on seed and step only.

    Views are cut on the CPU and recoloured on ``device``. Workers are forks that share the blocks
    of this process; they must not use a GPU.
    """

    def __init__(
        self,
        config: PatchTrainConfig,
        blocks: Blocks,
        *,
        workers: int = 0,
        device: torch.device = _CPU,
    ) -> None:
        """``workers``: number of processes that prefetch; 0 for none."""
        self.config, self.blocks, self.batch = config, blocks, config.batch
        self.workers, self.device = workers, device
        share = (
            np.array([len(patient_blocks) for patient_blocks in blocks.of_patient])
            ** config.patient_power
        )
        self.share = share / share.sum()
        numbers = {organ: i for i, organ in enumerate(sorted(set(blocks.organs) - {""}))}
        self.organs = np.array([numbers.get(organ, -1) for organ in blocks.organs])
        self._drawn: Iterator[Draw] = iter(())
        self._next: tuple[int, int] | None = None  # batch and step that come next

    def __call__(self, step: int) -> Batch:
        """The batch of a step; see ``Batch``."""
        drawn = self._from_workers(step) if self.workers else self.draw(step)
        pixels = drawn.pixels.to(self.device)
        views = restained(pixels, drawn.change.to(self.device))
        return Batch(
            views.contiguous(memory_format=torch.channels_last),
            drawn.patients.to(self.device),
            drawn.organs.to(self.device),
        )

    def close(self) -> None:
        """End the worker processes."""
        self._drawn, self._next = iter(()), None

    def draw(self, step: int) -> Draw:
        """Choose the examples of a step, and cut out their views."""
        config = self.config
        rng = np.random.default_rng((config.seed, step))
        patients = rng.choice(len(self.share), self.batch, p=self.share)
        chosen = [self.blocks.of_patient[patient] for patient in patients]
        pairs = [
            draw_pair(patient_blocks[int(rng.integers(len(patient_blocks)))], rng, config.view)
            for patient_blocks in chosen
        ]
        pixels = np.stack([pair[side] for side in range(2) for pair in pairs])
        colours = [self.blocks.colour[patient] for patient in patients] * 2
        return Draw(
            torch.from_numpy(pixels),
            torch.from_numpy(patients),
            torch.from_numpy(self.organs[patients]),
            draw_stains(colours, self.blocks.colour, rng, config.view),
        )

    def _from_workers(self, step: int) -> Draw:
        if self._next != (self.batch, step):
            loader = DataLoader(
                _Draws(self),
                batch_size=None,
                sampler=itertools.count(step, peers().world),
                num_workers=self.workers,
                multiprocessing_context="fork",
            )
            with _one_thread():
                self._drawn = iter(loader)
        self._next = (self.batch, step + peers().world)
        return next(self._drawn)


class _Draws(Dataset[Draw]):
    """Batches drawn by ``draw``, by step."""

    def __init__(self, batches: TissueBatches) -> None:
        self.batches = batches

    def __getitem__(self, step: int) -> Draw:
        return self.batches.draw(step)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread in OpenCV: a fork would wait for the others."""
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)

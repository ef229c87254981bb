"""The loop that all training schemes share: arguments, checkpoint, history and log.

A scheme brings a ``Learner``. Each step draws from a generator seeded by (seed, step), so an
interrupted run ends with the same weights as an uninterrupted one.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypedDict, TypeVar

import numpy as np
import torch
from torch import nn

from ml.config import config_hash
from ml.files import write_json
from ml.networks.device import REFERENCE, Compute, select_compute
from ml.training.common.checkpoint import RunState, read_checkpoint, write_checkpoint
from ml.training.common.length import RunConfig, length_field, with_length
from ml.training.common.memory import restore_batch, step_that_fits
from ml.training.common.peers import peers
from ml.training.common.plots import write_loss_plot
from ml.types import Progress, no_progress

History = dict[str, list[Any]]
"""Values recorded by a run: plain lists by name, ``loss`` with one entry a step."""

LAST_STEPS = 20
"""Number of steps whose mean is the last loss."""


HELD_OUT = "held_out"
"""Prefix of the names of values recorded on held-out examples."""


class Learner(Protocol):
    """Interface of a training scheme."""

    @property
    def modules(self) -> Mapping[str, nn.Module]:
        """Networks in a checkpoint by name, trained or not."""

    @property
    def optimiser(self) -> torch.optim.Optimizer:
        """Optimiser of the trained networks."""

    def step(self, number: int, history: History) -> float:
        """Take step ``number`` and return its loss; it may record more in ``history``."""


class RunSummary(TypedDict):
    """Common part of a training's result; schemes add their own."""

    name: str
    version: str
    weights: str
    train_config: dict[str, Any]  # of the scheme's configuration, whose fields differ
    train_config_hash: str
    loss_first: float | None
    loss_last: float | None
    seconds: float
    stopped_early: bool


C = TypeVar("C", bound=RunConfig)


@dataclass(slots=True)
class TrainingRun(Generic[C]):
    """One run of a scheme.

    Attributes:
        config: configuration; a checkpoint of another configuration is refused.
        out: folder for the checkpoint and the log, made if needed.
        given_weights: file to write, by default ``out/<name>.safetensors``.
        start: weights from which the run starts, if any.
        card: model card whose figures of training are replaced, if any.
        hours: wall time after which this call ends early, with weights; the same call continues
            later. None for no limit.
        compute: device of the networks; weights differ between GPU and CPU.
        progress: called after every step; it may raise ``CancelledError``.
        checkpoints: folder of the checkpoint, by default ``out``.
        history: values recorded so far, also by earlier parts of an interrupted run.
    """

    config: C
    out: Path
    given_weights: Path | None = None
    start: Path | None = None
    card: Path | None = None
    hours: float | None = None
    checkpoints: Path | None = None
    compute: Compute = REFERENCE
    progress: Progress = no_progress
    history: History = field(default_factory=dict)
    stopped_early: bool = False
    _started: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        for folder in (self.out, self.weights.parent):
            folder.mkdir(parents=True, exist_ok=True)

    @classmethod
    def of(cls, args: argparse.Namespace, config: C, progress: Progress) -> TrainingRun[C]:
        """Run by the arguments of ``add_run_arguments``.

        Of several processes only the first writes into the requested folder.
        """
        is_first = peers().rank == 0
        return cls(
            with_length(config, args.steps) if args.steps is not None else config,
            args.out if is_first else args.out / f".rank-{peers().rank}",
            given_weights=args.weights if is_first else None,
            start=getattr(args, "start", None),
            card=getattr(args, "card", None) if is_first else None,
            checkpoints=args.out,
            hours=args.hours,
            compute=select_compute(),
            progress=progress,
        )

    @property
    def weights(self) -> Path:
        """File of the weights."""
        return self.given_weights or self.out / f"{self.config.name}.safetensors"

    @property
    def losses(self) -> list[float]:
        """Loss of every step so far."""
        return self.history.setdefault("loss", [])

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Use one thread and the run's seed in torch; networks are built in this block."""
        with one_thread():
            torch.manual_seed(self.config.seed)
            yield

    def train(self, learner: Learner, *, steps: int, checkpoint_every: int) -> None:
        """Take the remaining steps of ``steps``, and move the networks to the CPU.

        Raises:
            BadInputError: the checkpoint is of another configuration, or of a run from other
                weights.
        """
        peers().barrier()  # the first process may still write the checkpoint of an earlier run
        self._resume(learner)
        peers().broadcast_weights(learner.modules.values())
        while len(self.losses) < steps:
            loss = step_that_fits(learner, len(self.losses), self.history)
            self.losses.append(peers().mean(loss))
            step = len(self.losses)
            if step % checkpoint_every == 0 or step == steps:
                self._save(learner)
            self.progress(step, steps, phase_text(self.history))
            if step < steps and peers().first_decides(value=self._time_is_over()):
                self._save(learner)
                self.stopped_early = True
                break
        for module in learner.modules.values():
            module.to("cpu")

    def summary(self, *, last: int = LAST_STEPS) -> RunSummary:
        """Summary with the losses; ``loss_last`` is a mean over the ``last`` steps."""
        losses = self.losses
        return {
            "name": self.config.name,
            "version": self.config.version,
            "weights": self.weights.name,
            "train_config": dataclasses.asdict(self.config),  # type: ignore[call-overload]
            "train_config_hash": config_hash(self.config),
            "loss_first": losses[0] if losses else None,
            "loss_last": float(np.mean(losses[-last:])) if losses else None,
            "seconds": self._passed_s(),
            "stopped_early": self.stopped_early,
        }

    def write_log(self, summary: Mapping[str, Any]) -> None:
        """Write ``log.json``, the summary and the history, and ``loss.png`` with matplotlib."""
        lines = {"loss": self.losses} | held_out_lines(self.history)
        write_loss_plot(self.out / "loss.png", lines, x="step")
        write_json(self.out / "log.json", _finite({**summary, "history": self.history}))

    @property
    def _checkpoint(self) -> Path:
        return (self.checkpoints or self.out) / "checkpoint.pt"

    def _time_is_over(self) -> bool:
        return self.hours is not None and self._passed_s() > 3600 * self.hours

    def _identity(self) -> C:
        """Configuration of a checkpoint, without the length of the run."""
        return with_length(self.config, 0) if length_field(self.config) else self.config

    def _passed_s(self) -> float:
        return time.perf_counter() - self._started

    def _start_digest(self) -> bytes:
        return b"" if self.start is None else hashlib.sha256(self.start.read_bytes()).digest()

    def _save(self, learner: Learner) -> None:
        if peers().rank:
            return
        state: RunState = {
            "modules": {name: module.state_dict() for name, module in learner.modules.items()},
            "optimiser": learner.optimiser.state_dict(),
            "history": self.history,
        }
        write_checkpoint(self._checkpoint, self._identity(), state, start=self._start_digest())

    def _resume(self, learner: Learner) -> None:
        state = read_checkpoint(self._checkpoint, self._identity(), start=self._start_digest())
        if state is None:
            return
        for name, module in learner.modules.items():
            module.load_state_dict(state["modules"][name])
        learner.optimiser.load_state_dict(state["optimiser"])
        self.history = state["history"]
        restore_batch(learner, self.history)


def held_out_lines(history: History) -> dict[str, list[float]]:
    """Values on held-out examples with one entry a step, by name."""
    steps = len(history.get("loss", []))
    return {
        name.replace("_", " "): line
        for name, line in history.items()
        if name.startswith(HELD_OUT) and len(line) == steps
    }


def phase_text(history: History) -> str:
    """Text of the progress bar: the last loss, and the last value of each held-out line."""
    parts = [f"training, loss {history['loss'][-1]:.3g}"]
    parts += [f"{name} {line[-1]:.3g}" for name, line in held_out_lines(history).items() if line]
    return ", ".join(parts)


def add_run_arguments(
    parser: argparse.ArgumentParser,
    *,
    has_data: bool = True,
    has_card: bool = False,
    has_start: bool = False,
) -> None:
    """Add the arguments that schemes share.

    Args:
        has_data: whether ``--data`` is required.
        has_card: whether the scheme writes figures into a model card.
        has_start: whether it can start from weights.
    """
    add = parser.add_argument
    add("--data", type=Path, required=has_data, help="folder the sources are in")
    add("--out", type=Path, required=True, help="folder for the checkpoint and the log")
    add("--config", type=Path, help="JSON; unknown keys are refused")
    add("--steps", type=int, help="length of the run, in rounds or epochs if it counts by those")
    add("--hours", type=float, help="end after this time, with weights; the same command continues")
    add("--weights", type=Path, help="where to write the weights (OUT/<name>.safetensors)")
    if has_start:
        add("--from", dest="start", type=Path, help="weights to start from: fine-tuning")
    if has_card:
        add("--card", type=Path, help="model card whose figures of training are renewed")


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread in torch: sums of several depend on the machine's load."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

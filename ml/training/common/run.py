"""One training run: its arguments, files, seed, thread, checkpoint, recorded numbers and log.

A scheme brings a ``Learner``, its networks with one step; the run takes the steps. Every step draws
from a generator of its own, seeded by (seed, step), so that an interrupted run ends with the same
weights as one that nothing interrupted.
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
from ml.networks.device import REFERENCE, Compute, chosen_compute
from ml.training.common.checkpoint import RunState, read_checkpoint, write_checkpoint
from ml.training.common.length import RunConfig, length_field, with_length
from ml.training.common.memory import batch_as_before, step_that_fits
from ml.training.common.peers import peers
from ml.training.common.plots import write_loss_plot
from ml.types import Progress, no_progress

History = dict[str, list[Any]]
"""What a run recorded: plain lists by name, ``loss`` with one entry a step."""

LAST_STEPS = 20
"""The last loss is a mean over this many steps: that of one step depends on what it drew."""


HELD_OUT = "held_out"
"""Begins the names of what a run records on examples that it does not learn from."""


class Learner(Protocol):
    """What a scheme adds to a run."""

    @property
    def modules(self) -> Mapping[str, nn.Module]:
        """Networks by name, trained or not: what a checkpoint keeps."""

    @property
    def optimiser(self) -> torch.optim.Optimizer:
        """Of the networks that are trained."""

    def step(self, number: int, history: History) -> float:
        """Take step ``number`` and return its loss; what else it records goes into ``history``."""


class RunSummary(TypedDict):
    """What every training returns; schemes add what is their own."""

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
        config: what is trained, and how; a checkpoint of another configuration is refused.
        out: folder for the checkpoint and the log, made if needed.
        given_weights: file to write, by default ``out/<name>.safetensors``.
        start: weights that the run starts from, if from any.
        card: model card whose figures of training are renewed, if any.
        hours: wall time after which this call ends the run as it stands, with weights; the same
            call continues later. None for no limit.
        compute: where the networks are; a GPU gives other sums, so other weights than a processor.
        progress: called after every step; it may raise ``CancelledError``, after which the same
            run continues from its last checkpoint.
        checkpoints: folder of the checkpoint, by default ``out``.
        history: what has been recorded so far, in earlier parts of an interrupted run as well.
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
        self.out.mkdir(parents=True, exist_ok=True)

    @classmethod
    def of(cls, args: argparse.Namespace, config: C, progress: Progress) -> TrainingRun[C]:
        """The run that the arguments of ``add_run_arguments`` ask for.

        Of processes that train together only the first writes into the folder that was asked for.
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
            compute=chosen_compute(),
            progress=progress,
        )

    def part(self, config: C, name: str, *, start: Path | None = None) -> TrainingRun[C]:
        """A run of its own in a folder of this one's, as long and on the same device."""
        return TrainingRun(
            config,
            self.out / name,
            start=start,
            hours=self.hours,
            checkpoints=None if self.checkpoints is None else self.checkpoints / name,
            compute=self.compute,
            progress=self.progress,
        )

    @property
    def weights(self) -> Path:
        """The file of the weights."""
        return self.given_weights or self.out / f"{self.config.name}.safetensors"

    @property
    def losses(self) -> list[float]:
        """The loss of every step so far."""
        return self.history.setdefault("loss", [])

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Torch on one thread and seeded: networks are to be built in this block."""
        with one_thread():
            torch.manual_seed(self.config.seed)
            yield

    def train(self, learner: Learner, *, steps: int, checkpoint_every: int) -> None:
        """Take the steps that are left of ``steps``; the networks end on the processor.

        A run that has reached its length continues if a later call asks for more.

        Raises:
            BadInputError: the checkpoint is of another configuration, or of a run from other
                weights.
        """
        peers().meet()  # the first may still be writing the checkpoint of a run before this one
        self._resume(learner)
        peers().begin_alike(learner.modules.values())
        while len(self.losses) < steps:
            loss = step_that_fits(learner, len(self.losses), self.history)
            self.losses.append(peers().mean(loss))
            done = len(self.losses)
            if done % checkpoint_every == 0 or done == steps:
                self._save(learner)
            self.progress(done, steps, told(self.history))
            if done < steps and peers().agreed(wish=self._time_is_over()):
                self._save(learner)
                self.stopped_early = True
                break
        for module in learner.modules.values():
            module.to("cpu")  # scores and files are made on the processor, whatever trained

    def summary(self, *, last: int = LAST_STEPS) -> RunSummary:
        """What was trained, and the losses; ``loss_last`` is a mean over the ``last`` steps."""
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
        """Write ``log.json``: the summary and every recorded number; what is not finite is null.

        Draws ``loss.png`` beside it where matplotlib is installed.
        """
        lines = {"loss": self.losses} | held_out_lines(self.history)
        write_loss_plot(self.out / "loss.png", lines, x="step")
        write_json(self.out / "log.json", _finite({**summary, "history": self.history}))

    @property
    def _checkpoint(self) -> Path:
        return (self.checkpoints or self.out) / "checkpoint.pt"

    def _time_is_over(self) -> bool:
        return self.hours is not None and self._passed_s() > 3600 * self.hours

    def _identity(self) -> C:
        """What a checkpoint belongs to: the configuration whatever its length."""
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
        batch_as_before(learner, self.history)


def held_out_lines(history: History) -> dict[str, list[float]]:
    """What a run recorded once a step on examples that it does not learn from, by name."""
    steps = len(history.get("loss", []))
    return {
        name.replace("_", " "): line
        for name, line in history.items()
        if name.startswith(HELD_OUT) and len(line) == steps
    }


def told(history: History) -> str:
    """The phase that the bar shows: the last loss, and what held-out examples say."""
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
        has_data: whether ``--data`` is required; where not, the scheme may read elsewhere.
        has_card: whether the scheme renews the figures of a model card.
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
    """Torch on one thread: more of them add in an order that depends on the machine's load."""
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

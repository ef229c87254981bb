"""What the training runs of descriptors share: one config, checkpoints, log, plot."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from ml.config import config_from_file
from ml.errors import BadInputError
from ml.files import write_text
from ml.training.common.checkpoint import read_checkpoint, write_checkpoint

T = TypeVar("T")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments that every scheme of a descriptor takes."""
    parser.add_argument("--data", type=Path, help="folder the stills' folder is in")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoint, log, plot")
    parser.add_argument("--config", type=Path, help="JSON; unknown keys are refused")
    parser.add_argument("--weights", type=Path, help="where to write the weights (OUT/<name>...)")
    parser.add_argument("--card", type=Path, help="model card whose figures of training to renew")


def config_of(cls: type[T], path: Path | None) -> T:
    """The configuration in a JSON file, or the default one.

    Raises:
        BadInputError: not JSON, or an unknown key.
    """
    return config_from_file(cls(), path)


def data_folder(data: Path | None) -> Path:
    """The given data folder.

    Raises:
        BadInputError: none was given.
    """
    if data is None:
        raise BadInputError("--data: expected the folder the stills' folder is in, got none")
    return data


class Checkpoint:
    """Networks, optimiser and history of a run in one file.

    It is bound to the run's configuration and to the weights that the run started from.

    Attributes:
        history: plain lists by name, one entry a step or epoch; they travel with the weights.
    """

    def __init__(
        self,
        path: Path,
        config: Any,
        *,
        modules: Mapping[str, nn.Module],
        optimiser: torch.optim.Optimizer,
        start: Path | None = None,
    ) -> None:
        self.path, self.config = path, config
        self.modules, self.optimiser = dict(modules), optimiser
        self.history: dict[str, list[Any]] = {}
        self._start = hashlib.sha256(start.read_bytes()).digest() if start is not None else b""

    def save(self) -> None:
        """Write it, whole or not at all."""
        state = {
            "modules": {name: module.state_dict() for name, module in self.modules.items()},
            "optimiser": self.optimiser.state_dict(),
            "history": self.history,
        }
        write_checkpoint(self.path, self.config, state, start=self._start)

    def resume(self) -> None:
        """Go on from the file, if there is one.

        Raises:
            BadInputError: it belongs to another configuration, or to a run from other weights.
        """
        state = read_checkpoint(self.path, self.config, start=self._start)
        if state is None:
            return
        for name, module in self.modules.items():
            module.load_state_dict(state["modules"][name])
        self.optimiser.load_state_dict(state["optimiser"])
        self.history = {name: list(values) for name, values in state["history"].items()}


def write_log(out: Path, config: Any, history: Mapping[str, Sequence[Any]], **more: Any) -> None:
    """Write ``log.json``: the configuration and every recorded number of the run."""
    log = {"config": dataclasses.asdict(config), "history": dict(history), **more}
    write_text(out / "log.json", json.dumps(log, indent=1) + "\n")


def write_loss_plot(
    path: Path,
    lines: Mapping[str, Sequence[float]],
    *,
    x: str,
    y: str = "loss",
    values: Sequence[float] | None = None,
) -> bool:
    """Draw lines over steps or epochs, or over ``values``, as PNG.

    Returns:
        False where matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        return False
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for name, line in lines.items():
        steps = range(1, len(line) + 1) if values is None else values
        axes.plot(steps, line, label=name, linewidth=1, marker=None if values is None else "o")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(color="#d9dce1", linewidth=0.6)
    if len(lines) > 1:
        axes.legend(frameon=False)
    figure.savefig(path, dpi=110)
    return True

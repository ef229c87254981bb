"""Checkpoints: the state of an interrupted run, tied to the configuration it belongs to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict, cast

import torch

from ml.config import config_hash
from ml.errors import BadInputError
from ml.files import replacing


class RunState(TypedDict):
    """Where a run stands: state dicts by module, the optimiser's, what was recorded by name."""

    modules: dict[str, dict[str, torch.Tensor]]
    optimiser: dict[str, Any]
    history: dict[str, list[float]]


def write_checkpoint(path: Path, config: Any, state: RunState, *, start: bytes = b"") -> None:
    """Write a run's state, whole or not at all.

    Args:
        config: dataclass of the run, whose hash is stored beside the state.
        state: ``torch.load(weights_only=True)`` reads it back: tensors, plain containers.
        start: digest of the weights that the run started from, if from any; hashed as well.
    """
    with replacing(path) as temporary:
        torch.save({"hash": config_hash(config, start), **state}, temporary)


def read_checkpoint(path: Path, config: Any, *, start: bytes = b"") -> RunState | None:
    """The state written there, or None if there is none.

    Raises:
        BadInputError: it belongs to another configuration, to a run from other weights, or to a
            release whose configurations had fewer fields.
    """
    if not path.is_file():
        return None
    held: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
    wanted = config_hash(config, start)
    if held["hash"] != wanted:
        raise BadInputError(
            "the output folder holds a checkpoint of another configuration, of other weights to "
            f"start from, or of an earlier release ({held['hash']}, not {wanted}). Choose another "
            "folder"
        )
    return cast(RunState, held)

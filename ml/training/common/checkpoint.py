"""Checkpoints of interrupted runs, bound to their configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict, cast

import torch

from ml.config import config_hash
from ml.errors import BadInputError
from ml.files import replacing


class RunState(TypedDict):
    """State of a run: state dicts by module, the optimiser's, and recorded values by name."""

    modules: dict[str, dict[str, torch.Tensor]]
    optimiser: dict[str, Any]
    history: dict[str, list[float]]


def write_checkpoint(path: Path, config: Any, state: RunState, *, start: bytes = b"") -> None:
    """Write a run's state atomically.

    Args:
        config: dataclass of the run, whose hash is stored with the state.
        state: tensors and plain containers, which ``torch.load(weights_only=True)`` reads.
        start: digest of the weights from which the run started, if any.
    """
    with replacing(path) as temporary:
        torch.save({"hash": config_hash(config, start), **state}, temporary)


def read_checkpoint(path: Path, config: Any, *, start: bytes = b"") -> RunState | None:
    """Read a run's state; None if there is no file.

    Raises:
        BadInputError: it is of another configuration, of a run from other weights, or of a release
            whose configurations had other fields.
    """
    if not path.is_file():
        return None
    saved_state: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
    expected_hash = config_hash(config, start)
    if saved_state["hash"] != expected_hash:
        raise BadInputError(
            "the output folder holds a checkpoint of another configuration, of other weights to "
            f"start from, or of an earlier release ({saved_state['hash']}, not {expected_hash}). "
            "Choose another folder"
        )
    return cast(RunState, saved_state)

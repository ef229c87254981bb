"""Weights in safetensors files that say what they are: read, written, put into a network."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ml.errors import WeightsError

N = TypeVar("N", bound=nn.Module)


def read_tensors(path: Path, architecture: str) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors of a file written by ``write_tensors``.

    Raises:
        WeightsError: no such file, damaged, of another architecture, metadata incomplete.
    """
    if not path.is_file():
        raise WeightsError(f"{path.name}: no such weights file")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path.name}: not a safetensors file, or damaged") from error
    found = metadata.get("architecture", "unknown")
    if found != architecture:
        raise WeightsError(
            f"{path.name}: weights of architecture {found!r}, expected {architecture!r}"
        )
    missing = {"name", "version", "config"} - set(metadata)
    if missing:
        raise WeightsError(f"{path.name}: metadata without {sorted(missing)[0]!r}")
    return metadata, tensors


def write_tensors(
    path: Path,
    tensors: Mapping[str, Tensor],
    *,
    architecture: str,
    name: str,
    version: str,
    config: Any,
) -> None:
    """Write tensors with what they are, whole or not at all; ``config`` is a dataclass."""
    metadata = {
        "architecture": architecture,
        "name": name,
        "version": version,
        "config": json.dumps(dataclasses.asdict(config), sort_keys=True),
    }
    temporary = path.with_name(f".{path.name}.tmp")
    save_file(dict(tensors), temporary, metadata=metadata)
    temporary.chmod(0o644)
    temporary.replace(path)


def filled(network: N, tensors: Mapping[str, Tensor], where: str) -> N:
    """The network with these tensors.

    Raises:
        WeightsError: a tensor is missing, too many, or of another size.
    """
    expected = {key: tuple(value.shape) for key, value in network.state_dict().items()}
    actual = {key: tuple(value.shape) for key, value in tensors.items()}
    if expected != actual:
        wrong = sorted(k for k in expected | actual if expected.get(k) != actual.get(k))[0]
        raise WeightsError(
            f"{where}: {wrong!r}: expected {expected.get(wrong)}, got {actual.get(wrong)}"
        )
    network.load_state_dict(dict(tensors))
    return network


def whole(network: nn.Module) -> dict[str, Tensor]:
    """The tensors of a network."""
    return {key: value.detach().contiguous() for key, value in network.state_dict().items()}


def halved(network: nn.Module) -> dict[str, Tensor]:
    """The tensors of a network, floating ones in half precision."""
    return {
        key: value.half() if value.is_floating_point() else value
        for key, value in whole(network).items()
    }

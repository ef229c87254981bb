"""Weights in safetensors files with metadata about architecture and configuration."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ml.config import config_from_json
from ml.errors import BadInputError, WeightsError
from ml.files import replacing

KEYS = frozenset({"name", "version", "config"})
"""Metadata keys of ``write_tensors`` besides the architecture."""

N = TypeVar("N", bound=nn.Module)
C = TypeVar("C")


def read_tensors(
    path: Path, *architectures: str, keys: frozenset[str] = KEYS
) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Read the metadata and tensors of a weights file.

    Args:
        architectures: Accepted architectures.
        keys: Required metadata keys besides the architecture.
    Raises:
        WeightsError: Missing or damaged file, another architecture, or a missing or unknown
            metadata key.
    """
    with _open_weights(path) as file:
        metadata = file.metadata() or {}
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    architecture = metadata.get("architecture", "unknown")
    if architecture not in architectures:
        expected = " or ".join(repr(name) for name in architectures)
        raise WeightsError(
            f"{path.name}: weights of architecture {architecture!r}, expected {expected}"
        )
    wrong = sorted((keys | {"architecture"}) ^ set(metadata))
    if wrong:
        problem = "with unknown key" if wrong[0] in metadata else "without"
        raise WeightsError(f"{path.name}: metadata {problem} {wrong[0]!r}")
    return metadata, tensors


def architecture_of(path: Path) -> str:
    """Architecture in the metadata of a file; "unknown" if missing.

    Raises:
        WeightsError: Missing or damaged file.
    """
    with _open_weights(path) as file:
        return str((file.metadata() or {}).get("architecture", "unknown"))


def read_config(cls: type[C], metadata: Mapping[str, str], where: str, key: str = "config") -> C:
    """Read a configuration from metadata.

    Args:
        cls: Dataclass of the configuration.
        where: Name of the file, for errors.
    Raises:
        WeightsError: Not JSON, an unknown key, or a value of another type.
    """
    try:
        return config_from_json(cls, metadata[key], where=key)
    except BadInputError as error:
        raise WeightsError(f"{where}: unreadable configuration: {error}") from error


def write_tensors(
    path: Path,
    tensors: Mapping[str, Tensor],
    *,
    architecture: str,
    name: str,
    version: str,
    config: Any,
) -> None:
    """Write tensors with metadata, atomically; ``config`` is a dataclass."""
    metadata = {
        "architecture": architecture,
        "name": name,
        "version": version,
        "config": json.dumps(dataclasses.asdict(config), sort_keys=True),
    }
    write_file(path, tensors, metadata)


def write_file(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write tensors and metadata, atomically."""
    with replacing(path) as temporary:
        save_file(dict(tensors), temporary, metadata=dict(metadata))


def load_tensors(
    network: N,
    tensors: Mapping[str, Tensor],
    where: str,
    *,
    stored: Collection[str] | None = None,
) -> N:
    """Load tensors into a network, in the precision of the network, and return it.

    Args:
        where: Name of the file, for errors.
        stored: Names of the expected tensors; None for all of the network.
    Raises:
        WeightsError: A tensor is missing, unknown, of another size, or not finite.
    """
    state = network.state_dict()
    names = state.keys() if stored is None else stored
    expected = {key: tuple(state[key].shape) for key in names}
    actual = {key: tuple(value.shape) for key, value in tensors.items()}
    if expected != actual:
        wrong = sorted(k for k in expected | actual if expected.get(k) != actual.get(k))[0]
        raise WeightsError(
            f"{where}: {wrong!r}: expected {expected.get(wrong)}, got {actual.get(wrong)}"
        )
    for key in sorted(tensors):
        if not torch.isfinite(tensors[key].float()).all():
            raise WeightsError(f"{where}: {key!r}: holds NaN or infinity")
    network.load_state_dict(dict(tensors), strict=stored is None)
    return network


def network_tensors(network: nn.Module) -> dict[str, Tensor]:
    """Tensors of a network, on the CPU."""
    return {key: value.detach().cpu().contiguous() for key, value in network.state_dict().items()}


def write_half_precision(
    path: str | Path, network: nn.Module, *, architecture: str, name: str, version: str, config: Any
) -> None:
    """Write a network's weights in half precision, atomically."""
    write_tensors(
        Path(path),
        half_precision_tensors(network),
        architecture=architecture,
        name=name,
        version=version,
        config=config,
    )


def half_precision_tensors(network: nn.Module) -> dict[str, Tensor]:
    """Tensors of a network, floating-point ones in half precision."""
    return {
        key: value.half() if value.is_floating_point() else value
        for key, value in network_tensors(network).items()
    }


@contextmanager
def _open_weights(path: Path) -> Iterator[Any]:
    if not path.is_file():
        raise WeightsError(f"{path.name}: no such weights file")
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path.name}: not a safetensors file, or damaged") from error

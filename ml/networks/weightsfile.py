"""Weights in safetensors files that say what they are: read, written, put into a network."""

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
"""What ``write_tensors`` says of a file besides its architecture."""

N = TypeVar("N", bound=nn.Module)
C = TypeVar("C")


def read_tensors(
    path: Path, *architectures: str, keys: frozenset[str] = KEYS
) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors of a file written by ``write_tensors`` or ``write_file``.

    Args:
        architectures: any of these will do. keys: of the metadata, besides the architecture.
    Raises:
        WeightsError: no such file, damaged, of another architecture, metadata with a key missing
            or unknown.
    """
    with _opened(path) as file:
        metadata = file.metadata() or {}
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    found = metadata.get("architecture", "unknown")
    if found not in architectures:
        expected = " or ".join(repr(name) for name in architectures)
        raise WeightsError(f"{path.name}: weights of architecture {found!r}, expected {expected}")
    wrong = sorted((keys | {"architecture"}) ^ set(metadata))
    if wrong:
        problem = "with unknown key" if wrong[0] in metadata else "without"
        raise WeightsError(f"{path.name}: metadata {problem} {wrong[0]!r}")
    return metadata, tensors


def architecture_of(path: Path) -> str:
    """What a file says it holds, without reading its tensors; "unknown" where it says nothing.

    Raises:
        WeightsError: no such file, or damaged.
    """
    with _opened(path) as file:
        return str((file.metadata() or {}).get("architecture", "unknown"))


def stored_config(cls: type[C], metadata: Mapping[str, str], where: str, key: str = "config") -> C:
    """The configuration that a file's metadata hold under a key.

    Raises:
        WeightsError: not JSON, an unknown key, or a value of another type.
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
    """Write tensors with what they are; ``config`` is a dataclass. See ``write_file``."""
    metadata = {
        "architecture": architecture,
        "name": name,
        "version": version,
        "config": json.dumps(dataclasses.asdict(config), sort_keys=True),
    }
    write_file(path, tensors, metadata)


def write_file(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write tensors and metadata, whole or not at all."""
    with replacing(path) as temporary:
        save_file(dict(tensors), temporary, metadata=dict(metadata))


def filled(
    network: N,
    tensors: Mapping[str, Tensor],
    where: str,
    *,
    stored: Collection[str] | None = None,
) -> N:
    """The network with these tensors, in its own precision.

    Args:
        stored: names of those that the file holds, where that is not all of the network.
    Raises:
        WeightsError: a tensor is missing, unknown, of another size, or not finite.
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


def whole(network: nn.Module) -> dict[str, Tensor]:
    """The tensors of a network."""
    return {key: value.detach().cpu().contiguous() for key, value in network.state_dict().items()}


def write_halved(
    path: str | Path, network: nn.Module, *, architecture: str, name: str, version: str, config: Any
) -> None:
    """Write a network's weights in half precision, whole or not at all; see ``write_tensors``."""
    write_tensors(
        Path(path),
        halved(network),
        architecture=architecture,
        name=name,
        version=version,
        config=config,
    )


def halved(network: nn.Module) -> dict[str, Tensor]:
    """The tensors of a network, floating ones in half precision."""
    return {
        key: value.half() if value.is_floating_point() else value
        for key, value in whole(network).items()
    }


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    if not path.is_file():
        raise WeightsError(f"{path.name}: no such weights file")
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path.name}: not a safetensors file, or damaged") from error

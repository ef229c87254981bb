"""Weights files of the learned descriptors."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from torch import Tensor, nn

from ml.errors import BadInputError, WeightsError
from ml.networks.keypoint_cnn import KeypointCnn, KeypointCnnConfig
from ml.networks.keypoint_gnn import KeypointGnn, KeypointGnnConfig
from ml.networks.triplet_cnn import TripletCnn, TripletCnnConfig
from ml.networks.weightsfile import (
    load_tensors,
    network_tensors,
    read_config,
    read_tensors,
    write_file,
)

SHIPPED = {name: f"{name}.safetensors" for name in ("triplet", "cnn", "graph")}
ARCHITECTURES = ("triplet-cnn", "keypoint-cnn", "keypoint-graph")

_HALVED_FROM = 1024
"""Smallest number of values of a tensor that is stored in half precision."""

_KEYS = frozenset({"name", "version", "ratio", "network", "graph"})

C = TypeVar("C")
M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True, slots=True)
class StoredDescriptor:
    """Content of a weights file; ``graph`` is None except for ``keypoint-graph``."""

    name: str
    version: str
    ratio: float
    network: TripletCnn | KeypointCnn
    graph: KeypointGnn | None


def save_descriptor(path: str | Path, stored: StoredDescriptor) -> None:
    """Write weights and configuration, atomically; large tensors in half precision."""
    tensors = {
        key: _storage_dtype(value) for key, value in network_tensors(_modules(stored)).items()
    }
    graph = None if stored.graph is None else dataclasses.asdict(stored.graph.config)
    metadata = {
        "architecture": _architecture(stored),
        "name": stored.name,
        "version": stored.version,
        "ratio": json.dumps(stored.ratio),
        "network": json.dumps(dataclasses.asdict(stored.network.config), sort_keys=True),
        "graph": json.dumps(graph, sort_keys=True),
    }
    write_file(Path(path), tensors, metadata)


def read_descriptor(path: Path) -> StoredDescriptor:
    """Read a file of ``save_descriptor``.

    Raises:
        WeightsError: Missing or damaged file, another architecture, an unknown key, or weights
            that do not match the configuration.
    """
    metadata, tensors = read_tensors(path, *ARCHITECTURES, keys=_KEYS)
    where = path.name
    network: TripletCnn | KeypointCnn
    if metadata["architecture"] == "triplet-cnn":
        triplet = read_config(TripletCnnConfig, metadata, where, "network")
        network = _build(TripletCnn, triplet, where)
    else:
        cnn = read_config(KeypointCnnConfig, metadata, where, "network")
        network = _build(KeypointCnn, cnn, where)
    graph = None
    if metadata["architecture"] == "keypoint-graph":
        gnn = read_config(KeypointGnnConfig, metadata, where, "graph")
        graph = _build(KeypointGnn, gnn, where)
    ratio = _ratio(metadata, where)
    stored = StoredDescriptor(metadata["name"], metadata["version"], ratio, network, graph)
    load_tensors(_modules(stored), tensors, path.name)
    return stored


def _architecture(stored: StoredDescriptor) -> str:
    if isinstance(stored.network, TripletCnn):
        return ARCHITECTURES[0]
    return ARCHITECTURES[1 if stored.graph is None else 2]


def _modules(stored: StoredDescriptor) -> nn.ModuleDict:
    """The convolutional and the graph network, by the prefixes of their tensors in the file."""
    modules: dict[str, nn.Module] = {"network": stored.network}
    if stored.graph is not None:
        modules["graph"] = stored.graph
    return nn.ModuleDict(modules)


def _storage_dtype(value: Tensor) -> Tensor:
    is_large = value.is_floating_point() and value.numel() >= _HALVED_FROM
    return (value.half() if is_large else value).cpu()


def _ratio(metadata: dict[str, str], where: str) -> float:
    try:
        return float(metadata["ratio"])
    except ValueError as error:
        raise WeightsError(
            f"{where}: ratio: expected a number, got {metadata['ratio']!r}"
        ) from error


def _build(module: Callable[[C], M], config: C, where: str) -> M:
    """Create the network of a configuration.

    Raises:
        WeightsError: Invalid sizes.
    """
    try:
        return module(config)
    except (BadInputError, ValueError, RuntimeError) as error:
        raise WeightsError(f"{where}: configuration: {error}") from error

"""Weights of the learned descriptors: files that say what they are, and refusal of what is not."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor, nn

from ml.errors import BadInputError, WeightsError
from ml.networks.keypoint_cnn import KeypointCnn, KeypointCnnConfig
from ml.networks.keypoint_gnn import KeypointGnn, KeypointGnnConfig
from ml.networks.triplet_cnn import TripletCnn, TripletCnnConfig
from ml.networks.weightsfile import filled, read_tensors, whole, write_file

WEIGHTS_FOLDER = Path(__file__).resolve().parent.parent / "weights"
SHIPPED = {name: f"{name}.safetensors" for name in ("triplet", "cnn", "graph")}
ARCHITECTURES = ("triplet-cnn", "keypoint-cnn", "keypoint-graph")

_HALVED_FROM = 1024
"""Tensors of so many numbers are stored in half precision."""

_KEYS = frozenset({"name", "version", "ratio", "network", "graph"})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredDescriptor:
    """A descriptor as its file holds it; ``graph`` is None but for ``keypoint-graph``."""

    name: str
    version: str
    ratio: float
    network: TripletCnn | KeypointCnn
    graph: KeypointGnn | None


def save_descriptor(path: str | Path, stored: StoredDescriptor) -> None:
    """Write weights and configuration, whole or not at all; large tensors in half precision."""
    tensors = {key: _stored(value) for key, value in whole(_modules(stored)).items()}
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
        WeightsError: no such file, damaged, another architecture, an unknown key, or weights that
            do not fit their configuration.
    """
    metadata, tensors = read_tensors(path, *ARCHITECTURES, keys=_KEYS)
    network_config = _json(path, metadata, "network")
    network: TripletCnn | KeypointCnn
    if metadata["architecture"] == "triplet-cnn":
        network = _built(path, TripletCnn, TripletCnnConfig, network_config)
    else:
        network = _built(path, KeypointCnn, KeypointCnnConfig, network_config)
    graph = None
    if metadata["architecture"] == "keypoint-graph":
        graph = _built(path, KeypointGnn, KeypointGnnConfig, _json(path, metadata, "graph"))
    ratio = _json(path, metadata, "ratio")
    if not isinstance(ratio, float | int):
        raise WeightsError(f"{path.name}: ratio: expected a number, got {ratio!r}")
    stored = StoredDescriptor(metadata["name"], metadata["version"], float(ratio), network, graph)
    filled(_modules(stored), tensors, path.name)
    return stored


def _architecture(stored: StoredDescriptor) -> str:
    if isinstance(stored.network, TripletCnn):
        return ARCHITECTURES[0]
    return ARCHITECTURES[1 if stored.graph is None else 2]


def _modules(stored: StoredDescriptor) -> nn.ModuleDict:
    """Both networks under the names that prefix their tensors in the file."""
    modules: dict[str, nn.Module] = {"network": stored.network}
    if stored.graph is not None:
        modules["graph"] = stored.graph
    return nn.ModuleDict(modules)


def _stored(value: Tensor) -> Tensor:
    is_large = value.is_floating_point() and value.numel() >= _HALVED_FROM
    return (value.half() if is_large else value).cpu()


def _json(path: Path, metadata: dict[str, str], key: str) -> Any:
    try:
        return json.loads(metadata[key])
    except ValueError as error:
        raise WeightsError(f"{path.name}: metadata {key!r}: not JSON: {error}") from error


def _built(path: Path, module: type[T], config: type[Any], values: Any) -> T:
    known = {field.name for field in dataclasses.fields(config)}
    if not isinstance(values, dict) or set(values) != known:
        wrong = sorted(known ^ set(values))[0] if isinstance(values, dict) else values
        raise WeightsError(
            f"{path.name}: configuration: {wrong!r} is missing or unknown;"
            f" expected {', '.join(sorted(known))}"
        )
    plain = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    try:
        return module(config(**plain))  # type: ignore[call-arg]
    except (BadInputError, TypeError, ValueError, RuntimeError) as error:
        raise WeightsError(f"{path.name}: configuration: {error}") from error

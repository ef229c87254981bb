"""Weights of the learned descriptors: files that say what they are, and refusal of what is not."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ml.errors import BadInputError, WeightsError
from ml.networks.keypoint_cnn import KeypointCnn, KeypointCnnConfig
from ml.networks.keypoint_gnn import KeypointGnn, KeypointGnnConfig
from ml.networks.triplet_cnn import TripletCnn, TripletCnnConfig

WEIGHTS_FOLDER = Path(__file__).resolve().parent.parent / "weights"
SHIPPED = {name: f"{name}.safetensors" for name in ("triplet", "cnn", "graph")}
ARCHITECTURES = ("triplet-cnn", "keypoint-cnn", "keypoint-graph")

_HALVED_FROM = 1024
"""Tensors of so many numbers are stored in half precision."""

_KEYS = {"architecture", "name", "version", "ratio", "network", "graph"}

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
    from safetensors.torch import save_file

    path = Path(path)
    tensors = _prefixed("network.", stored.network)
    if stored.graph is not None:
        tensors |= _prefixed("graph.", stored.graph)
    graph = None if stored.graph is None else dataclasses.asdict(stored.graph.config)
    metadata = {
        "architecture": _architecture(stored),
        "name": stored.name,
        "version": stored.version,
        "ratio": json.dumps(stored.ratio),
        "network": json.dumps(dataclasses.asdict(stored.network.config), sort_keys=True),
        "graph": json.dumps(graph, sort_keys=True),
    }
    temporary = path.with_name(f".{path.name}.tmp")
    save_file(tensors, temporary, metadata=metadata)
    temporary.chmod(0o644)
    temporary.replace(path)


def read_descriptor(path: Path) -> StoredDescriptor:
    """Read a file of ``save_descriptor``.

    Raises:
        WeightsError: no such file, damaged, another architecture, an unknown key, or weights that
            do not fit their configuration.
    """
    metadata, tensors = _read(path)
    network_config = _json(path, metadata, "network")
    network: TripletCnn | KeypointCnn
    if metadata["architecture"] == "triplet-cnn":
        network = _built(path, TripletCnn, TripletCnnConfig, network_config)
    else:
        network = _built(path, KeypointCnn, KeypointCnnConfig, network_config)
    modules: dict[str, nn.Module] = {"network.": network}
    graph = None
    if metadata["architecture"] == "keypoint-graph":
        graph = _built(path, KeypointGnn, KeypointGnnConfig, _json(path, metadata, "graph"))
        modules["graph."] = graph
    _fill(path, modules, tensors)
    ratio = _json(path, metadata, "ratio")
    if not isinstance(ratio, float | int):
        raise WeightsError(f"{path.name}: ratio: expected a number, got {ratio!r}")
    return StoredDescriptor(metadata["name"], metadata["version"], float(ratio), network, graph)


def _architecture(stored: StoredDescriptor) -> str:
    if isinstance(stored.network, TripletCnn):
        return ARCHITECTURES[0]
    return ARCHITECTURES[1 if stored.graph is None else 2]


def _prefixed(prefix: str, module: nn.Module) -> dict[str, Tensor]:
    kept = {}
    for key, value in module.state_dict().items():
        is_large = value.is_floating_point() and value.numel() >= _HALVED_FROM
        stored = value.detach().half() if is_large else value.detach()
        kept[prefix + key] = stored.cpu().contiguous()
    return kept


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    if not path.is_file():
        raise WeightsError(f"{path.name}: no such weights file")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path.name}: not a safetensors file, or damaged") from error
    architecture = metadata.get("architecture", "unknown")
    if architecture not in ARCHITECTURES:
        raise WeightsError(
            f"{path.name}: weights of architecture {architecture!r}, expected one of"
            f" {', '.join(ARCHITECTURES)}"
        )
    wrong = sorted(_KEYS ^ set(metadata))
    if wrong:
        problem = "without" if wrong[0] in _KEYS else "with unknown key"
        raise WeightsError(f"{path.name}: metadata {problem} {wrong[0]!r}")
    return metadata, tensors


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


def _fill(path: Path, modules: dict[str, nn.Module], tensors: dict[str, Tensor]) -> None:
    expected = {
        prefix + key: value
        for prefix, m in modules.items()
        for key, value in m.state_dict().items()
    }
    for key in sorted(expected.keys() | tensors.keys()):
        wanted = tuple(expected[key].shape) if key in expected else None
        found = tuple(tensors[key].shape) if key in tensors else None
        if wanted != found:
            raise WeightsError(f"{path.name}: {key!r}: expected {wanted}, got {found}")
        if not torch.isfinite(tensors[key].float()).all():
            raise WeightsError(f"{path.name}: {key!r}: holds NaN or infinity")
    for prefix, module in modules.items():
        own = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        module.load_state_dict({k: v.to(expected[prefix + k].dtype) for k, v in own.items()})

"""Encoders by name: weights files that say what they are, and refusal of what they are not."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from ml.errors import BadInputError, UnknownNameError, WeightsError
from ml.networks.gcn import RoiGcn
from ml.networks.patch_cnn import PatchCnn
from ml.roi.config import EncoderConfig, config_from_dict, config_hash
from ml.roi.embed import RoiEncoder
from ml.roi.encoders.combined import CombinedEncoder
from ml.roi.encoders.patch_cnn import NAME, PatchCnnEncoder, filled, halved
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.encoders.registry import make_patch_encoder

if TYPE_CHECKING:
    from torch import Tensor

ARCHITECTURE = "roi-gcn"
_PATCH = "patch."
WEIGHTS_FOLDER = Path(__file__).resolve().parent.parent / "weights"
SHIPPED = {
    "roi-default": "roi-default.safetensors",
    "roi-endoscopy": "roi-endoscopy.safetensors",
}
SHIPPED_PATCH_CNN = "patch-cnn.safetensors"
ALIASES = {"default": "roi-default", "endoscopy": "roi-endoscopy"}


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """What an encoder is, without its weights."""

    name: str
    version: str
    config_hash: str
    dim: int
    kind: str


def list_encoders() -> tuple[EncoderInfo, ...]:
    """Every shipped encoder; the first is the default."""
    encoders = (load_encoder(name) for name in SHIPPED)
    return tuple(EncoderInfo(e.name, e.version, e.config_hash, e.dim, e.kind) for e in encoders)


@lru_cache(maxsize=8)
def load_encoder(name: str = "default") -> RoiEncoder:
    """A shipped encoder by name, loaded once a process; its methods are thread-safe.

    Args:
        name: "default" (histology), "endoscopy", or a name of ``list_encoders``.
    Raises:
        UnknownNameError: no such encoder.
        WeightsError: its file is missing or damaged.
    """
    full = ALIASES.get(name, name)
    if full not in SHIPPED:
        raise UnknownNameError("encoder", name, [*ALIASES, *SHIPPED])
    return encoder_from_file(WEIGHTS_FOLDER / SHIPPED[full])


def encoder_from_file(path: str | Path) -> RoiEncoder:
    """An encoder from a file written by ``save_encoder``.

    Raises:
        WeightsError: no such file, damaged, of another architecture, other features or sizes.
    """
    path = Path(path)
    metadata, tensors = _read(path)
    config = _config(path, metadata)
    patches = _patch_encoder(path, config, tensors)
    tensors = {key: value for key, value in tensors.items() if not key.startswith(_PATCH)}
    network = RoiGcn(config.network)
    expected = {key: tuple(value.shape) for key, value in network.state_dict().items()}
    actual = {key: tuple(value.shape) for key, value in tensors.items()}
    if expected != actual:
        wrong = sorted(k for k in expected | actual if expected.get(k) != actual.get(k))[0]
        raise WeightsError(
            f"{path.name}: {wrong!r}: expected {expected.get(wrong)}, got {actual.get(wrong)}"
        )
    network.load_state_dict(tensors)
    return RoiEncoder(
        name=metadata["name"],
        version=metadata["version"],
        config_hash=config_hash(config, path.read_bytes()),
        config=config,
        network=network,
        patches=patches,
    )


def save_encoder(
    path: str | Path,
    *,
    name: str,
    version: str,
    config: EncoderConfig,
    network: RoiGcn,
    patches: PatchEncoder | None = None,
) -> None:
    """Write an encoder's weights and configuration, whole or not at all.

    Args:
        patches: its patch encoder; our own network's weights go into the same file.
    """
    from safetensors.torch import save_file

    path = Path(path)
    tensors = {key: value.detach().contiguous() for key, value in network.state_dict().items()}
    cnn = _own_network(patches)
    if cnn is not None:
        tensors |= {_PATCH + key: value for key, value in halved(cnn).items()}
    metadata = {
        "architecture": ARCHITECTURE,
        "name": name,
        "version": version,
        "config": json.dumps(dataclasses.asdict(config), sort_keys=True),
    }
    temporary = path.with_name(f".{path.name}.tmp")
    save_file(tensors, temporary, metadata=metadata)
    temporary.chmod(0o644)
    temporary.replace(path)


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
    if architecture != ARCHITECTURE:
        raise WeightsError(
            f"{path.name}: weights of architecture {architecture!r}, expected {ARCHITECTURE!r}"
        )
    missing = {"name", "version", "config"} - set(metadata)
    if missing:
        raise WeightsError(f"{path.name}: metadata without {sorted(missing)[0]!r}")
    return metadata, tensors


def _config(path: Path, metadata: dict[str, str]) -> EncoderConfig:
    try:
        config = config_from_dict(EncoderConfig, json.loads(metadata["config"]))
    except (BadInputError, ValueError) as error:
        raise WeightsError(f"{path.name}: unreadable configuration: {error}") from error
    return config


def _patch_encoder(path: Path, config: EncoderConfig, tensors: dict[str, Tensor]) -> PatchEncoder:
    cnn = None
    if NAME in config.features.split("+"):
        own = {k.removeprefix(_PATCH): v for k, v in tensors.items() if k.startswith(_PATCH)}
        cnn = PatchCnnEncoder(filled(PatchCnn(config.patch_cnn), own, path.name))
    try:
        encoder = make_patch_encoder(config.features, cnn=cnn)
    except UnknownNameError as error:
        raise WeightsError(f"{path.name}: {error}") from error
    if encoder.dim != config.network.in_dim:
        raise WeightsError(
            f"{path.name}: trained on features {config.features!r} of {config.network.in_dim},"
            f" this version computes {encoder.name!r} of {encoder.dim}"
        )
    return encoder


def _own_network(patches: PatchEncoder | None) -> PatchCnn | None:
    parts = patches.parts if isinstance(patches, CombinedEncoder) else (patches,)
    return next((part.network for part in parts if isinstance(part, PatchCnnEncoder)), None)

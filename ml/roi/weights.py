"""Encoders by name: weights files that say what they are, and refusal of what they are not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from ml.config import config_hash
from ml.errors import UnknownNameError, WeightsError
from ml.files import WEIGHTS_FOLDER
from ml.networks.gcn import RoiGcn
from ml.networks.patch_cnn import PatchCnn
from ml.networks.textons import TextonBank
from ml.networks.vertex_mean import VertexMean, make_graph_network
from ml.networks.weightsfile import (
    filled,
    halved,
    read_tensors,
    stored_config,
    whole,
    write_tensors,
)
from ml.roi.config import EncoderConfig
from ml.roi.embed import RoiEncoder
from ml.roi.encoders.combined import CombinedEncoder
from ml.roi.encoders.patch_cnn import NAME as PATCH_CNN
from ml.roi.encoders.patch_cnn import PatchCnnEncoder
from ml.roi.encoders.probe import check_probe, probe_vector
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.encoders.registry import make_patch_encoder
from ml.roi.encoders.textons import NAME as TEXTONS
from ml.roi.encoders.textons import TextonEncoder

ARCHITECTURE = "roi-gcn"
_PREFIXES = {PATCH_CNN: "patch.", TEXTONS: "textons."}
_PROBE = "probe"
"""What a published network answered when the encoder was made, see ``encoders.probe``."""
ENDING = ".safetensors"
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
    """A shipped encoder by name, or one's own by file, loaded once a process; thread-safe.

    Args:
        name: "default" (histology), "endoscopy", a name of ``list_encoders``, or the path of a
            file that ends in ``.safetensors``.
    Raises:
        UnknownNameError: no such encoder.
        WeightsError: its file is missing or damaged.
    """
    if name.endswith(ENDING):
        return encoder_from_file(name)
    full = ALIASES.get(name, name)
    if full not in SHIPPED:
        raise UnknownNameError("encoder", name, [*ALIASES, *SHIPPED])
    return encoder_from_file(WEIGHTS_FOLDER / SHIPPED[full])


def encoder_from_file(path: str | Path) -> RoiEncoder:
    """An encoder from a file written by ``save_encoder``.

    Raises:
        WeightsError: no such file, damaged, of another architecture, other features or sizes; or
            it needs a published network that is not here, or another than it was made with.
    """
    path = Path(path)
    metadata, tensors = read_tensors(path, ARCHITECTURE)
    config = stored_config(EncoderConfig, metadata, path.name)
    probe = tensors.pop(_PROBE, None)
    patches = _patch_encoder(path, config, tensors)
    check_probe(path.name, patches, None if probe is None else probe.numpy())
    own = tuple(_PREFIXES.values())
    graph = {key: value for key, value in tensors.items() if not key.startswith(own)}
    network = filled(make_graph_network(config.network), graph, path.name)
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
    network: RoiGcn | VertexMean,
    patches: PatchEncoder | None = None,
) -> None:
    """Write an encoder's weights and configuration, whole or not at all.

    Args:
        patches: its patch encoder; our own network's weights go into the same file, of a published
            one only what it answers to a test patch.
    """
    tensors = whole(network)
    probe = probe_vector(patches)
    if probe is not None:
        tensors[_PROBE] = torch.from_numpy(probe)
    for part in parts_of(patches):
        if isinstance(part, PatchCnnEncoder):
            tensors |= _prefixed(PATCH_CNN, halved(part.network))
        if isinstance(part, TextonEncoder):
            tensors |= _prefixed(TEXTONS, whole(part.network))
    write_tensors(
        Path(path), tensors, architecture=ARCHITECTURE, name=name, version=version, config=config
    )


def _patch_encoder(path: Path, config: EncoderConfig, tensors: dict[str, Tensor]) -> PatchEncoder:
    names = config.features.split("+")
    cnn, textons = None, None
    if PATCH_CNN in names:
        own = _without_prefix(PATCH_CNN, tensors)
        cnn = PatchCnnEncoder(filled(PatchCnn(config.patch_cnn), own, path.name))
    if TEXTONS in names:
        own = _without_prefix(TEXTONS, tensors)
        textons = TextonEncoder(filled(TextonBank(config.textons), own, path.name))
    try:
        encoder = make_patch_encoder(config.features, cnn=cnn, textons=textons)
    except UnknownNameError as error:
        raise WeightsError(f"{path.name}: {error}") from error
    if encoder.dim != config.network.in_dim:
        raise WeightsError(
            f"{path.name}: trained on features {config.features!r} of {config.network.in_dim},"
            f" this version computes {encoder.name!r} of {encoder.dim}"
        )
    return encoder


def parts_of(patches: PatchEncoder | None) -> tuple[PatchEncoder | None, ...]:
    """The encoders that a combined one is made of; any other by itself."""
    return patches.parts if isinstance(patches, CombinedEncoder) else (patches,)


def _prefixed(name: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {_PREFIXES[name] + key: value for key, value in tensors.items()}


def _without_prefix(name: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    prefix = _PREFIXES[name]
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}

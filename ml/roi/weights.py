"""Weights files of graph encoders: they say what they hold, and anything else is refused."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from ml.config import config_hash
from ml.errors import UnknownNameError, WeightsError
from ml.networks.device import chosen_compute
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
SHIPPED_PATCH_CNN = "patch-cnn.safetensors"


def encoder_from_file(path: str | Path) -> RoiEncoder:
    """A graph encoder from a file written by ``save_encoder``.

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
        cnn = PatchCnnEncoder(
            filled(PatchCnn(config.patch_cnn), own, path.name), compute=chosen_compute()
        )
    if TEXTONS in names:
        own = _without_prefix(TEXTONS, tensors)
        textons = TextonEncoder(filled(TextonBank(config.textons), own, path.name), config.textons)
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

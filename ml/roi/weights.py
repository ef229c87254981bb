"""Weights files of graph encoders."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from ml.config import config_hash
from ml.errors import UnknownNameError, WeightsError
from ml.networks.device import select_compute
from ml.networks.gcn import RoiGcn
from ml.networks.patch_cnn import PatchCnn
from ml.networks.roi_context import RoiPooled
from ml.networks.textons import TextonBank
from ml.networks.vertex_mean import VertexMean, make_graph_network
from ml.networks.weightsfile import (
    half_precision_tensors,
    load_tensors,
    network_tensors,
    read_config,
    read_tensors,
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
POOLED_PREFIX = "roi-"
"""Prefix of the architecture of a ``RoiPooled``; its network follows."""
POOLED = ("diffpool", "topk")
_PREFIXES = {PATCH_CNN: "patch.", TEXTONS: "textons."}
_PROBE = "probe"
"""Key of the stored output of a published network, see ``encoders.probe``."""
SHIPPED_PATCH_CNN = "patch-cnn.safetensors"


def read_graph_encoder(path: str | Path) -> RoiEncoder:
    """Read the output of ``save_encoder``.

    Raises:
        WeightsError: Missing or damaged file, another architecture, other features or sizes; or a
            published network that is missing or differs from the original one.
    """
    path = Path(path)
    pooled = [POOLED_PREFIX + name for name in POOLED]
    metadata, tensors = read_tensors(path, ARCHITECTURE, *pooled)
    config = read_config(EncoderConfig, metadata, path.name)
    probe = tensors.pop(_PROBE, None)
    patches = _patch_encoder(path, config, tensors)
    check_probe(path.name, patches, None if probe is None else probe.numpy())
    prefixes = tuple(_PREFIXES.values())
    graph = {key: value for key, value in tensors.items() if not key.startswith(prefixes)}
    architecture = metadata["architecture"]
    network: RoiGcn | VertexMean = (
        make_graph_network(config.network)
        if architecture == ARCHITECTURE
        else RoiPooled(config.network, architecture.removeprefix(POOLED_PREFIX))
    )
    load_tensors(network, graph, path.name)
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
    """Write an encoder's weights and configuration, atomically.

    Args:
        patches: Patch encoder; trained weights are written to the same file, of a published
            network only the output for a test patch.
    """
    tensors = network_tensors(network)
    probe = probe_vector(patches)
    if probe is not None:
        tensors[_PROBE] = torch.from_numpy(probe)
    for part in parts_of(patches):
        if isinstance(part, PatchCnnEncoder):
            tensors |= _add_prefix(PATCH_CNN, half_precision_tensors(part.network))
        if isinstance(part, TextonEncoder):
            tensors |= _add_prefix(TEXTONS, network_tensors(part.network))
    architecture = ARCHITECTURE
    if isinstance(network, RoiPooled):
        architecture = POOLED_PREFIX + network.name
    write_tensors(
        Path(path), tensors, architecture=architecture, name=name, version=version, config=config
    )


def _patch_encoder(path: Path, config: EncoderConfig, tensors: dict[str, Tensor]) -> PatchEncoder:
    names = config.features.split("+")
    cnn, textons = None, None
    if PATCH_CNN in names:
        part_tensors = _remove_prefix(PATCH_CNN, tensors)
        cnn = PatchCnnEncoder(
            load_tensors(PatchCnn(config.patch_cnn), part_tensors, path.name),
            compute=select_compute(),
        )
    if TEXTONS in names:
        part_tensors = _remove_prefix(TEXTONS, tensors)
        textons = TextonEncoder(
            load_tensors(TextonBank(config.textons), part_tensors, path.name), config.textons
        )
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
    """Parts of a combined encoder, or the encoder itself."""
    return patches.parts if isinstance(patches, CombinedEncoder) else (patches,)


def _add_prefix(name: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {_PREFIXES[name] + key: value for key, value in tensors.items()}


def _remove_prefix(name: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    prefix = _PREFIXES[name]
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}

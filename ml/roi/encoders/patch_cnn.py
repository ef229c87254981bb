"""Our own convolutional patch encoder, and its weights file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ml.errors import BadInputError, WeightsError
from ml.networks.patch_cnn import PatchCnn, PatchCnnConfig
from ml.roi.config import config_from_dict
from ml.roi.stain import StainEstimate, deconvolve, optical_density
from ml.types import ArrayF32, ImageU8

ARCHITECTURE = "patch-cnn"
NAME = "patch-cnn"


class PatchCnnEncoder:
    """A trained ``PatchCnn`` on stain concentrations relative to the region's own."""

    name = NAME

    def __init__(self, network: PatchCnn) -> None:
        self.network = network.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.dim = network.config.out_dim
        self.scale = np.ones(self.dim, np.float32)

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``; one patch at a time, so that its company changes no bit."""
        with torch.inference_mode():
            rows = [self.network(_input(patch, stains))[0].numpy() for patch in patches]
        return np.stack(rows).astype(np.float32)


def save_patch_cnn(path: str | Path, *, name: str, version: str, network: PatchCnn) -> None:
    """Write the weights in half precision, whole or not at all."""
    path = Path(path)
    metadata = {
        "architecture": ARCHITECTURE,
        "name": name,
        "version": version,
        "config": json.dumps(dataclasses.asdict(network.config), sort_keys=True),
    }
    temporary = path.with_name(f".{path.name}.tmp")
    save_file(halved(network), temporary, metadata=metadata)
    temporary.chmod(0o644)
    temporary.replace(path)


def load_patch_cnn(path: str | Path) -> PatchCnnEncoder:
    """Read what ``save_patch_cnn`` wrote.

    Raises:
        WeightsError: no such file, damaged, of another architecture or other sizes.
    """
    path = Path(path)
    if not path.is_file():
        raise WeightsError(f"{path.name}: no such weights file")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path.name}: not a safetensors file, or damaged") from error
    found = metadata.get("architecture", "unknown")
    if found != ARCHITECTURE:
        raise WeightsError(
            f"{path.name}: weights of architecture {found!r}, expected {ARCHITECTURE!r}"
        )
    try:
        config = config_from_dict(PatchCnnConfig, json.loads(metadata.get("config", "")))
    except (BadInputError, ValueError) as error:
        raise WeightsError(f"{path.name}: unreadable configuration: {error}") from error
    return PatchCnnEncoder(filled(PatchCnn(config), tensors, path.name))


def halved(network: PatchCnn) -> dict[str, Tensor]:
    """The tensors of a network, floating ones in half precision."""
    return {
        key: (value.half() if value.is_floating_point() else value).detach().contiguous()
        for key, value in network.state_dict().items()
    }


def filled(network: PatchCnn, tensors: dict[str, Tensor], where: str) -> PatchCnn:
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
    network.load_state_dict(tensors)
    return network


def _input(patch: ImageU8, stains: StainEstimate) -> Tensor:
    """(1, 3, h, w) float32: haematoxylin, eosin, mean density, 1.0 being fully stained."""
    density = optical_density(patch).mean(axis=2, keepdims=True) / np.float32(stains.density_scale)
    x = np.concatenate([deconvolve(patch, stains), np.clip(density, 0, 2)], axis=2)
    return torch.from_numpy(np.ascontiguousarray(x.transpose(2, 0, 1)[None], dtype=np.float32))

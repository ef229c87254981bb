"""Weights files of the ``vit`` descriptor."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from torch import Tensor

from ml.networks.vit_adapter import SMALL, VitConfig, VitMatcher
from ml.networks.weightsfile import load_tensors, read_config, read_tensors, write_file

ARCHITECTURE = "vit-adapter"
KEYS = frozenset({"version", "config"})


def save_network(path: Path, network: VitMatcher, *, version: str) -> None:
    """Write trained weights (in half precision) and the configuration, atomically.

    Of a backbone of ``transformers`` only the name is written.
    """
    tensors = {key: value.half().contiguous() for key, value in _stored_tensors(network).items()}
    metadata = {
        "architecture": ARCHITECTURE,
        "version": version,
        "config": json.dumps(dataclasses.asdict(network.config), sort_keys=True),
    }
    write_file(path, tensors, metadata)


def read_network(path: Path) -> tuple[VitMatcher, str]:
    """Read the network and version of a file of ``save_network``.

    Raises:
        WeightsError: Missing or damaged file, another architecture, weights that do not match the
            configuration or are not finite, or the backbone cannot be loaded.
    """
    metadata, tensors = read_tensors(path, ARCHITECTURE, keys=KEYS)
    network = VitMatcher(read_config(VitConfig, metadata, path.name))
    load_tensors(network, tensors, path.name, stored=_stored_tensors(network))
    return network, metadata["version"]


def _stored_tensors(network: VitMatcher) -> dict[str, Tensor]:
    """Floating-point tensors that are stored, without batch counters."""
    includes_backbone = network.config.backbone == SMALL
    return {
        key: value
        for key, value in network.state_dict().items()
        if value.is_floating_point() and (includes_backbone or not key.startswith("backbone."))
    }

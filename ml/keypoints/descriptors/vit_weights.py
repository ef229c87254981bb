"""Weights of the ``vit`` descriptor: files that say what they are, and refusal of what is not."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from torch import Tensor

from ml.networks.vit_adapter import SMALL, VitConfig, VitMatcher
from ml.networks.weightsfile import filled, read_tensors, stored_config, write_file

ARCHITECTURE = "vit-adapter"
KEYS = frozenset({"version", "config"})


def save_network(path: Path, network: VitMatcher, *, version: str) -> None:
    """Write what was trained (in half precision) and the configuration, whole or not at all.

    A backbone of ``transformers`` is named, not copied.
    """
    tensors = {key: value.half().contiguous() for key, value in _stored(network).items()}
    metadata = {
        "architecture": ARCHITECTURE,
        "version": version,
        "config": json.dumps(dataclasses.asdict(network.config), sort_keys=True),
    }
    write_file(path, tensors, metadata)


def read_network(path: Path) -> tuple[VitMatcher, str]:
    """The network of a file of ``save_network``, and its version.

    Raises:
        WeightsError: missing, damaged, of another architecture, weights that do not fit their
            configuration or are not finite, or the backbone cannot be loaded.
    """
    metadata, tensors = read_tensors(path, ARCHITECTURE, keys=KEYS)
    network = VitMatcher(stored_config(VitConfig, metadata, path.name))
    filled(network, tensors, path.name, stored=_stored(network))
    return network, metadata["version"]


def _stored(network: VitMatcher) -> dict[str, Tensor]:
    """The floating-point state that a file holds; counters of batches are left out."""
    is_own = network.config.backbone == SMALL
    return {
        key: value
        for key, value in network.state_dict().items()
        if value.is_floating_point() and (is_own or not key.startswith("backbone."))
    }

"""Weights file of a ``KeypointEncoder``."""

from __future__ import annotations

from pathlib import Path

from ml.config import config_hash
from ml.keypoints.descriptors.tessera import WEIGHTS as DESCRIPTOR_WEIGHTS
from ml.keypoints.descriptors.tessera import load_tessera
from ml.networks.vlad import Vlad
from ml.networks.weightsfile import load_tensors, read_config, read_tensors, write_half_precision
from ml.roi.keypoints.encoder import KeypointEncoder, KeypointEncoderConfig

ARCHITECTURE = "roi-vlad"


def save_keypoint_encoder(
    path: Path, *, name: str, version: str, config: KeypointEncoderConfig, network: Vlad
) -> None:
    """Write vocabulary, projection and configuration, in half precision, atomically."""
    write_half_precision(
        path, network, architecture=ARCHITECTURE, name=name, version=version, config=config
    )


def load_keypoint_encoder(path: Path) -> KeypointEncoder:
    """Read the output of ``save_keypoint_encoder``; uses the shipped descriptor.

    Raises:
        WeightsError: Missing or damaged file, another architecture or other sizes.
    """
    metadata, tensors = read_tensors(path, ARCHITECTURE)
    config = read_config(KeypointEncoderConfig, metadata, path.name)
    return KeypointEncoder(
        name=metadata["name"],
        version=metadata["version"],
        # Other weights of the descriptor give other vectors.
        config_hash=config_hash(config, path.read_bytes(), DESCRIPTOR_WEIGHTS.read_bytes()),
        config=config,
        network=load_tensors(Vlad(config.vlad), tensors, path.name),
        descriptor=load_tessera(DESCRIPTOR_WEIGHTS),
    )

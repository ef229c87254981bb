"""The weights file of a ``KeypointEncoder``."""

from __future__ import annotations

from pathlib import Path

from ml.config import config_hash
from ml.keypoints.descriptors.tessera import WEIGHTS as DESCRIPTOR_WEIGHTS
from ml.keypoints.descriptors.tessera import load_tessera
from ml.networks.vlad import Vlad
from ml.networks.weightsfile import filled, read_tensors, stored_config, write_halved
from ml.roi.keypoints.encoder import KeypointEncoder, KeypointEncoderConfig

ARCHITECTURE = "roi-vlad"


def save_keypoint_encoder(
    path: Path, *, name: str, version: str, config: KeypointEncoderConfig, network: Vlad
) -> None:
    """Write vocabulary, projection and configuration, in half precision, whole or not at all."""
    write_halved(
        path, network, architecture=ARCHITECTURE, name=name, version=version, config=config
    )


def load_keypoint_encoder(path: Path) -> KeypointEncoder:
    """Read what ``save_keypoint_encoder`` wrote; the descriptor is the shipped one.

    Raises:
        WeightsError: no such file, damaged, of another architecture or other sizes.
    """
    metadata, tensors = read_tensors(path, ARCHITECTURE)
    config = stored_config(KeypointEncoderConfig, metadata, path.name)
    return KeypointEncoder(
        name=metadata["name"],
        version=metadata["version"],
        # Other weights of the descriptor give other vectors.
        config_hash=config_hash(config, path.read_bytes(), DESCRIPTOR_WEIGHTS.read_bytes()),
        config=config,
        network=filled(Vlad(config.vlad), tensors, path.name),
        descriptor=load_tessera(DESCRIPTOR_WEIGHTS),
    )

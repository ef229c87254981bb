"""Encoders by name, of whatever kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ml.errors import BadInputError, UnknownNameError
from ml.files import WEIGHTS_FOLDER
from ml.networks.weightsfile import architecture_of
from ml.roi.embed import RoiEncoder
from ml.roi.keypoints.weights import ARCHITECTURE as KEYPOINTS
from ml.roi.keypoints.weights import load_keypoint_encoder
from ml.roi.protocol import RegionEncoder
from ml.roi.weights import encoder_from_file

ENDING = ".safetensors"
SHIPPED = {
    "roi-default": "roi-default.safetensors",
    "roi-endoscopy": "roi-endoscopy.safetensors",
}
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
def load_encoder(name: str = "default") -> RegionEncoder:
    """A shipped encoder by name, or any other by file, loaded once a process; thread-safe.

    Args:
        name: "default" (histology), "endoscopy", a name of ``list_encoders``, or the path of a
            file that ends in ``.safetensors``.
    Raises:
        UnknownNameError: no such encoder.
        WeightsError: its file is missing or damaged.
    """
    return encoder_of_file(_path(name))


def encoder_of_file(path: Path) -> RegionEncoder:
    """An encoder of whatever kind from its file, read again each time.

    Raises:
        WeightsError: the file is missing or damaged.
    """
    if architecture_of(path) == KEYPOINTS:
        return load_keypoint_encoder(path)
    return encoder_from_file(path)


def load_graph_encoder(name: str = "default") -> RoiEncoder:
    """As ``load_encoder``, for callers that need the graph of a region.

    Raises:
        BadInputError: it makes none.
    """
    encoder = load_encoder(name)
    if not isinstance(encoder, RoiEncoder):
        raise BadInputError(f"{name}: expected an encoder that makes graphs; this one makes none")
    return encoder


def _path(name: str) -> Path:
    if name.endswith(ENDING):
        return Path(name)
    full = ALIASES.get(name, name)
    if full not in SHIPPED:
        raise UnknownNameError("encoder", name, [*ALIASES, *SHIPPED])
    return WEIGHTS_FOLDER / SHIPPED[full]

"""Region encoders by name or file."""

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
from ml.roi.weights import read_graph_encoder

ENDING = ".safetensors"
SHIPPED = {
    "roi-default": "roi-default.safetensors",
    "roi-endoscopy": "roi-endoscopy.safetensors",
    "roi-graph": "roi-graph.safetensors",
}
ALIASES = {"default": "roi-default", "endoscopy": "roi-endoscopy", "graph": "roi-graph"}


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """Description of an encoder without its weights."""

    name: str
    version: str
    config_hash: str
    dim: int
    kind: str


def list_encoders() -> tuple[EncoderInfo, ...]:
    """All shipped encoders; the first is the default."""
    encoders = (load_encoder(name) for name in SHIPPED)
    return tuple(EncoderInfo(e.name, e.version, e.config_hash, e.dim, e.kind) for e in encoders)


@lru_cache(maxsize=8)
def load_encoder(name: str = "default") -> RegionEncoder:
    """Load a shipped encoder by name, or any encoder by file. Thread-safe; cached per process.

    Args:
        name: "default" (histology), "graph" (histology, with a graph part), "endoscopy", a name of
            ``list_encoders``, or the path of a file that ends in ``.safetensors``.
    Raises:
        UnknownNameError: Unknown encoder.
        WeightsError: The file is missing or damaged.
    """
    return read_encoder(_path(name))


def read_encoder(path: Path) -> RegionEncoder:
    """Read an encoder of any architecture from a file, without a cache.

    Raises:
        WeightsError: The file is missing or damaged.
    """
    if architecture_of(path) == KEYPOINTS:
        return load_keypoint_encoder(path)
    return read_graph_encoder(path)


def load_graph_encoder(name: str = "default") -> RoiEncoder:
    """Load an encoder that builds a graph of a region; see ``load_encoder``.

    Raises:
        BadInputError: The encoder builds no graph.
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

"""Compared methods: encoders and baselines.

Encoders with the same patches and network share its output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypedDict

from ml.config import config_hash
from ml.errors import BadInputError
from ml.evaluation.retrieval.regions import RegionImage
from ml.evaluation.retrieval.suite.query_methods import BY_DISTANCE, QueryMethod
from ml.networks.gcn import GcnConfig
from ml.roi import load_encoder
from ml.roi.embed import RoiEncoder
from ml.roi.encoders.patch_cnn import PatchCnnEncoder
from ml.roi.graph import RoiGraph
from ml.roi.protocol import RegionEncoder
from ml.types import ArrayF32


class MethodAbout(TypedDict, total=False):
    """Encoder of a method, if it is one."""

    version: str
    config_hash: str
    dim: int


@dataclass(frozen=True, slots=True)
class SuiteMethod:
    """One row of the table.

    Attributes:
        name: unique in a run.
        key: of configuration and weights; another key, other vectors.
        baseline: whether it is a baseline.
        embed: vector of a region.
        about: the encoder, for the report.
    """

    name: str
    key: str
    baseline: bool
    embed: Callable[[RegionImage], ArrayF32]
    about: MethodAbout = field(default_factory=MethodAbout)
    query_method: QueryMethod = BY_DISTANCE


def encoder_methods(names: Sequence[str]) -> tuple[SuiteMethod, ...]:
    """Shipped encoders by name, and encoders from weights files, named by their file.

    Raises:
        BadInputError: an encoder is named twice.
        UnknownNameError, WeightsError: no such encoder, or a file that holds none.
    """
    shared: dict[str, _SharedGraphs] = {}
    methods = [_encoder_method(name, shared) for name in names]
    keys = [method.key for method in methods]
    for method in methods:
        if keys.count(method.key) > 1:
            raise BadInputError(f"--encoder: {method.name} is given twice")
    titles = [method.name for method in methods]
    for method in methods:
        if titles.count(method.name) > 1:
            raise BadInputError(f"--encoder: two files are called {method.name}: rename one")
    return tuple(methods)


class _SharedGraphs:
    """Graph of the most recent region."""

    def __init__(self, encoder: RoiEncoder) -> None:
        self._encoder = encoder
        self._last: tuple[RegionImage, RoiGraph] | None = None

    def of(self, region: RegionImage) -> RoiGraph:
        if self._last is None or self._last[0] is not region:
            graph = self._encoder.image_graph((region.pixels, region.polygon, region.mpp))
            self._last = (region, graph)
        return self._last[1]


def _encoder_method(name: str, shared: dict[str, _SharedGraphs]) -> SuiteMethod:
    is_file = name.endswith(".safetensors")
    encoder = load_encoder(name)
    about: MethodAbout = {
        "version": encoder.version,
        "config_hash": encoder.config_hash,
        "dim": encoder.dim,
    }
    return SuiteMethod(
        name=Path(name).stem if is_file else encoder.name,
        key=encoder.config_hash,
        baseline=False,
        embed=_embedder(encoder, shared),
        about=about,
    )


def _embedder(
    encoder: RegionEncoder, shared: dict[str, _SharedGraphs]
) -> Callable[[RegionImage], ArrayF32]:
    if not isinstance(encoder, RoiEncoder) or not isinstance(encoder.patches, PatchCnnEncoder):
        return lambda region: encoder.embed(region.pixels, region.polygon, region.mpp)
    weights = encoder.patches.network.state_dict()
    digest = b"".join(weights[key].numpy().tobytes() for key in sorted(weights))
    key = config_hash(replace(encoder.config, network=GcnConfig()), digest)
    graphs = shared.setdefault(key, _SharedGraphs(encoder))
    return lambda region: encoder.embed_graph(graphs.of(region))

"""What is compared: a name, a vector of a region, and a key that changes whenever vectors do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from ml.errors import BadInputError
from ml.evaluation.retrieval.regions import RegionImage
from ml.evaluation.retrieval.suite.asking import PLAINLY, Asking
from ml.roi import load_encoder
from ml.types import ArrayF32


class MethodAbout(TypedDict, total=False):
    """Which encoder a method is, where it is one."""

    version: str
    config_hash: str
    dim: int


@dataclass(frozen=True, slots=True)
class Method:
    """One row of the table.

    Attributes:
        name: unique in a run. key: of configuration and weights.
        baseline: what an encoder has to beat.
        embed: the vector of a region, whose Euclidean distance ranks.
        about: which encoder, for the report.
        asking: how queries are asked.
    """

    name: str
    key: str
    baseline: bool
    embed: Callable[[RegionImage], ArrayF32]
    about: MethodAbout = field(default_factory=MethodAbout)
    asking: Asking = PLAINLY


def encoder_methods(names: Sequence[str]) -> tuple[Method, ...]:
    """Shipped encoders by name, and encoders from weights files, named by their file.

    Raises:
        BadInputError: an encoder is named twice.
        UnknownNameError, WeightsError: no such encoder, or a file that is none.
    """
    methods = [_encoder_method(name) for name in names]
    keys = [method.key for method in methods]
    for method in methods:
        if keys.count(method.key) > 1:
            raise BadInputError(f"--encoder: {method.name} is given twice")
    titles = [method.name for method in methods]
    for method in methods:
        if titles.count(method.name) > 1:
            raise BadInputError(f"--encoder: two files are called {method.name}: rename one")
    return tuple(methods)


def _encoder_method(name: str) -> Method:
    is_file = name.endswith(".safetensors")
    encoder = load_encoder(name)
    about: MethodAbout = {
        "version": encoder.version,
        "config_hash": encoder.config_hash,
        "dim": encoder.dim,
    }
    return Method(
        name=Path(name).stem if is_file else encoder.name,
        key=encoder.config_hash,
        baseline=False,
        embed=lambda region: encoder.embed(region.pixels, region.polygon, region.mpp),
        about=about,
    )

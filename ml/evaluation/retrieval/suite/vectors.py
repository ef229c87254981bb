"""Cached vectors of each method, set and draw."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ml.errors import BadInputError, MlError
from ml.evaluation.retrieval.regions import RegionImage
from ml.evaluation.retrieval.suite.methods import SuiteMethod
from ml.evaluation.retrieval.suite.sets import SuiteSet
from ml.evaluation.retrieval.suite.swap import Recolouring, restained
from ml.files import write_npz
from ml.types import ArrayF32, Progress


@dataclass(frozen=True, slots=True)
class SetVectors:
    """Vectors of one method on one set.

    Attributes:
        clean: (N, D) of the unchanged items.
        swapped: (N, D) of each draw; items outside any gallery have their clean vectors.
        seconds: mean time of an item; that of shared patches counts for the first method.
    """

    clean: ArrayF32
    swapped: tuple[ArrayF32, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class _Part:
    """Items that are computed and cached as a unit: unchanged, or of one draw."""

    title: str
    items: tuple[int, ...]
    recolouring: Mapping[str, Recolouring]


def set_vectors(  # noqa: PLR0917
    suite_set: SuiteSet,
    regions: Sequence[RegionImage],
    swaps: Sequence[Mapping[str, Recolouring]],
    methods: Sequence[SuiteMethod],
    cache: Path | None,
    progress: Progress,
) -> dict[str, SetVectors]:
    """Vectors of each method by name; methods of one key share them.

    Args:
        regions: of the items of the set.
        swaps: recolouring of each stain batch, for each draw.
        cache: folder of one file for each method, set and draw; None for no cache.
    Raises:
        BadInputError: a region that a method cannot embed; the region is named.
    """
    parts = [_Part("as is", tuple(range(len(regions))), {})]
    parts += [
        _Part(f"stain swap {draw}", suite_set.gallery, swap) for draw, swap in enumerate(swaps, 1)
    ]
    by_key = {method.key: method for method in reversed(methods)}  # the first of each key counts
    first = [method for method in methods if by_key[method.key] is method]
    part_vectors = [
        _part_vectors(suite_set, regions, part, first, cache, progress) for part in parts
    ]
    shared = {method.key: _assemble(method.name, parts, part_vectors) for method in first}
    return {method.name: shared[method.key] for method in methods}


_Found = tuple[ArrayF32, float]


def _assemble(
    name: str, parts: Sequence[_Part], part_vectors: Sequence[Mapping[str, _Found]]
) -> SetVectors:
    clean, seconds = part_vectors[0][name]
    swapped = []
    for part, vectors in zip(parts[1:], part_vectors[1:], strict=True):
        full = clean.copy()
        full[list(part.items)] = vectors[name][0]
        swapped.append(full)
    return SetVectors(clean, tuple(swapped), seconds)


def _part_vectors(  # noqa: PLR0917
    suite_set: SuiteSet,
    regions: Sequence[RegionImage],
    part: _Part,
    methods: Sequence[SuiteMethod],
    cache: Path | None,
    progress: Progress,
) -> dict[str, _Found]:
    paths = {method.name: _path(cache, method, suite_set, part) for method in methods}
    results = {
        name: cached for name, path in paths.items() if (cached := _read_cache(path)) is not None
    }
    missing = [method for method in methods if method.name not in results]
    if not missing:
        return results
    rows: dict[str, list[ArrayF32]] = {method.name: [] for method in missing}
    seconds = dict.fromkeys(rows, 0.0)
    for item_number, number in enumerate(part.items, 1):
        region = _recolour(suite_set, regions[number], number, part)
        for method in missing:
            started = time.perf_counter()
            rows[method.name].append(_embed_region(method, region, suite_set.items[number].key))
            seconds[method.name] += time.perf_counter() - started
        progress(item_number, len(part.items), f"{suite_set.config.name}, {part.title}")
    for name, vectors in rows.items():
        results[name] = (np.stack(vectors), seconds[name] / len(vectors))
        path = paths[name]
        if path is not None:
            write_npz(path, {"vectors": results[name][0], "seconds": np.array(results[name][1])})
    return results


def _recolour(suite_set: SuiteSet, region: RegionImage, number: int, part: _Part) -> RegionImage:
    if not part.recolouring:
        return region
    change = part.recolouring[suite_set.items[number].stained]
    return RegionImage(restained(region.pixels, change), region.polygon, region.mpp)


def _embed_region(method: SuiteMethod, region: RegionImage, key: str) -> ArrayF32:
    try:
        return method.embed(region)
    except MlError as error:
        raise BadInputError(f"{method.name}: {key.split(maxsplit=1)[0]}: {error}") from error


def _path(cache: Path | None, method: SuiteMethod, suite_set: SuiteSet, part: _Part) -> Path | None:
    if cache is None:
        return None
    digest = hashlib.sha256(method.key.encode())
    for number in part.items:
        item = suite_set.items[number]
        digest.update(f"\n{item.key}".encode())
        if part.recolouring:
            digest.update(part.recolouring[item.stained].as_bytes())
    title = f"{suite_set.config.name}-{method.name}-{part.title}".replace(" ", "-")
    return cache / f"{title}-{digest.hexdigest()[:16]}.npz"


def _read_cache(path: Path | None) -> _Found | None:
    if path is None or not path.is_file():
        return None
    with np.load(path) as file:
        return np.asarray(file["vectors"], np.float32), float(file["seconds"])

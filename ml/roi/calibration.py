"""The null distribution of an encoder's distances: regions of different organs, never related.

Regions are drawn at random inside tissue, at all scales, from groups of slides that share nothing
(organ, laboratory, patient); every pair of regions of two groups is an unrelated pair. What is kept
are quantiles, beside the weights, see ``ml.index.calibration``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from scipy.spatial.distance import cdist
from shapely.geometry import box
from shapely.geometry.base import BaseGeometry

from ml.errors import BadInputError, EmptyRegionError
from ml.imaging.slides import SlideImage, open_slide
from ml.index.calibration import (
    Calibration,
    calibration_of,
    calibration_path,
    read_calibration,
    write_calibration,
)
from ml.roi.embedded import Embedded
from ml.roi.geometry import ASSUMED_MPP
from ml.roi.measures.features import tissue_share
from ml.roi.patches import isotropic_mpp
from ml.types import ArrayF32, ArrayF64, Progress, no_progress

__all__ = [
    "Calibration",
    "calibration_of",
    "calibration_path",
    "fit_calibration",
    "null_distances",
    "read_calibration",
    "regions_of",
    "write_calibration",
]

PROBABILITIES = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15),
    *(0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
)
SIDE_UM = (224.0, 1500.0)
"""Sides of the regions drawn, log-uniform: from a single patch to several glands."""
_MIN_TISSUE = 0.5  # of a region: half glass would compare glass
_TRIES = 40  # for each region, before the slide counts as empty
_LOOK_PX = 128  # enough to see how much is tissue


class RegionEmbedder(Protocol):
    """What is needed of an encoder."""

    config_hash: str

    def embed_region(
        self, slide: SlideImage, polygon_l0: BaseGeometry | None, mpp: float | None = None
    ) -> Embedded:
        """See ``RoiEncoder.embed_region``."""
        ...


def fit_calibration(
    encoder: RegionEmbedder,
    groups: Mapping[str, Sequence[Path]],
    *,
    regions_per_group: int = 40,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Calibration:
    """Embed random regions of each group and take the quantiles of distances between groups.

    Args:
        groups: name to files of slides or stills; two groups or more that share nothing.
        regions_per_group: drawn in turn from the group's files.
    Raises:
        BadInputError: fewer than two groups, or too few regions of tissue to take quantiles of.
    """
    if len(groups) < 2:
        raise BadInputError(
            f"calibration: expected two unrelated groups or more, got {len(groups)}"
        )
    rng = np.random.default_rng(seed)
    vectors: dict[str, ArrayF32] = {}
    for number, (name, files) in enumerate(groups.items()):
        progress(number, len(groups), f"regions of {name}")
        vectors[name] = _embedded(encoder, name, files, regions_per_group, rng)
    distances = null_distances(list(vectors.values()))
    if distances.size < 20:
        raise BadInputError(f"calibration: only {distances.size} unrelated pairs, 20 needed")
    return Calibration.from_quantiles(
        PROBABILITIES,
        np.quantile(distances, PROBABILITIES).tolist(),
        config_hash=encoder.config_hash,
        pairs=int(distances.size),
        regions=sum(len(v) for v in vectors.values()),
        groups=tuple(vectors),
    )


def null_distances(groups: Sequence[ArrayF32]) -> ArrayF64:
    """(P,) float64 ascending: distances between vectors (N_i, D) of different groups."""
    parts = [
        cdist(a, b).ravel()
        for i, a in enumerate(groups)
        for b in groups[i + 1 :]
        if len(a) * len(b)
    ]
    return np.sort(np.concatenate(parts)) if parts else np.zeros(0)


def regions_of(slide: SlideImage, count: int, rng: np.random.Generator) -> Iterator[BaseGeometry]:
    """At most ``count`` random squares of tissue in level-0 pixels; fewer where there is little."""
    info = slide.info
    mpp = isotropic_mpp(info.mpp_x, info.mpp_y) or ASSUMED_MPP
    longest = min(info.width_px, info.height_px)
    found = 0
    for _ in range(count * _TRIES):
        side = min(float(np.exp(rng.uniform(*np.log(SIDE_UM)))) / mpp, longest)
        left = float(rng.uniform(0, info.width_px - side))
        top = float(rng.uniform(0, info.height_px - side))
        look = slide.read_scaled((left, top), (side, side), max(1.0, side / _LOOK_PX))
        if tissue_share(look) >= _MIN_TISSUE:
            yield box(left, top, left + side, top + side)
            found += 1
            if found == count:
                return


def _embedded(
    encoder: RegionEmbedder,
    name: str,
    files: Sequence[Path],
    count: int,
    rng: np.random.Generator,
) -> ArrayF32:
    if not files:
        raise BadInputError(f"calibration: group {name!r} has no files")
    chosen = [files[i] for i in rng.permutation(len(files))[:count]]
    each = -(-count // len(chosen))
    vectors: list[ArrayF32] = []
    for path in chosen:
        with open_slide(path) as slide:
            for region in regions_of(slide, min(each, count - len(vectors)), rng):
                try:
                    vectors.append(encoder.embed_region(slide, region).vector)
                except EmptyRegionError:
                    continue
    if not vectors:
        raise BadInputError(f"calibration: group {name!r} holds no tissue")
    return np.stack(vectors)

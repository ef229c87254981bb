"""The null distribution of an encoder's distances: regions of different organs, never related.

Regions are drawn at random inside tissue, at all scales, from groups of slides that share nothing
(organ, laboratory, patient), or inside what a scope sees, from different operations; every pair of
regions of two groups is an unrelated pair. What is kept are quantiles, beside the weights, see
``ml.index.answers.calibration``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
from scipy.spatial.distance import cdist
from shapely.geometry import box
from shapely.geometry.base import BaseGeometry

from ml.errors import BadInputError, EmptyRegionError
from ml.imaging.slides import SlideImage, open_slide
from ml.index.answers.calibration import (
    Calibration,
    calibration_of,
    calibration_path,
    read_calibration,
    write_calibration,
)
from ml.keypoints.masks import scope_mask
from ml.roi.embedded import Embedded
from ml.roi.geometry import ASSUMED_MPP
from ml.roi.measures.features import tissue_share
from ml.roi.patches import isotropic_mpp
from ml.types import ArrayF32, ArrayF64, ImageU8, Progress, no_progress

__all__ = [
    "Calibration",
    "calibration_of",
    "calibration_path",
    "fit_calibration",
    "null_distances",
    "read_calibration",
    "regions_of",
    "squares_seen",
    "write_calibration",
]

Window = tuple[float, float, float, float]
"""Left, top, right and bottom of a part of an image, as shares of its sides."""
ALL_OF_IT: Window = (0.0, 0.0, 1.0, 1.0)

PROBABILITIES = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15),
    *(0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
)
SIDE_UM = (224.0, 1500.0)
"""Sides of the regions drawn, log-uniform: from a single patch to several glands."""
SIDE_SHARE = (0.08, 0.4)
"""Sides of squares on endoscopic images, log-uniform, as shares of what the scope sees: no
image says how many microns a pixel is."""
_MIN_TISSUE = 0.5  # of a region: with less, glass would be compared
_TRIES = 40  # for each region, before the slide counts as empty
_LOOK_PX = 128  # enough to see how much is tissue


class RegionEmbedder(Protocol):
    """What is needed of an encoder."""

    config_hash: str
    kind: str

    def embed_region(
        self, slide: SlideImage, polygon_l0: BaseGeometry | None, mpp: float | None = None
    ) -> Embedded:
        """See ``RoiEncoder.embed_region``."""
        ...

    def embed_image(self, image: ImageU8, polygon: BaseGeometry | None = None) -> Embedded:
        """See ``RegionEncoder.embed_image``."""
        ...


def fit_calibration(
    encoder: RegionEmbedder,
    groups: Mapping[str, Sequence[Path]],
    *,
    regions_per_group: int = 40,
    seed: int = 0,
    window: Window = ALL_OF_IT,
    progress: Progress = no_progress,
) -> Calibration:
    """Embed random regions of each group and take the quantiles of distances between groups.

    Args:
        groups: name to files of slides or stills; two groups or more that share nothing.
        regions_per_group: drawn in turn from the group's files.
        window: of endoscopic stills the part that regions are drawn from, clear of burnt-in text.
    Raises:
        BadInputError: fewer than two groups, one without files or tissue, or too few pairs.
    """
    if len(groups) < 2:
        raise BadInputError(
            f"calibration: expected two unrelated groups or more, got {len(groups)}"
        )
    rng = np.random.default_rng(seed)
    vectors: dict[str, ArrayF32] = {}
    for number, (name, files) in enumerate(groups.items()):
        progress(number, len(groups), f"regions of {name}")
        vectors[name] = _embedded(encoder, name, files, regions_per_group, rng, window)
    distances = null_distances(list(vectors.values()))
    if distances.size < 20:
        raise BadInputError(f"calibration: only {distances.size} unrelated pairs, needs 20")
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


def squares_seen(
    image: ImageU8, rng: np.random.Generator, window: Window = ALL_OF_IT
) -> Iterator[BaseGeometry]:
    """Random squares of an endoscopic image (H, W, 3) that lie inside what the scope sees.

    They end after ``_TRIES`` misses in a row: the scope sees too little here.
    """
    sees = scope_mask(np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.uint8))
    height, width = sees.shape
    left, top, right, bottom = np.array(window) * (width, height, width, height)
    rows, columns = np.flatnonzero(sees.any(axis=1)), np.flatnonzero(sees.any(axis=0))
    longest = min(np.ptp(rows), np.ptp(columns), right - left, bottom - top)
    missed = 0
    while missed < _TRIES:
        side = float(np.exp(rng.uniform(*np.log(SIDE_SHARE)))) * longest
        x, y = float(rng.uniform(left, right - side)), float(rng.uniform(top, bottom - side))
        missed += 1
        if sees[int(y) : int(y + side) + 1, int(x) : int(x + side) + 1].all():
            missed = 0
            yield box(x, y, x + side, y + side)


def _embedded(  # noqa: PLR0917
    encoder: RegionEmbedder,
    name: str,
    files: Sequence[Path],
    count: int,
    rng: np.random.Generator,
    window: Window,
) -> ArrayF32:
    if not files:
        raise BadInputError(f"calibration: group {name!r} has no files")
    chosen = [files[i] for i in rng.permutation(len(files))[:count]]
    each = -(-count // len(chosen))
    vectors: list[ArrayF32] = []
    for path in chosen:
        with open_slide(path) as slide:
            wanted = min(each, count - len(vectors))
            if encoder.kind == "endoscopy":
                vectors += _of_still(encoder, slide, wanted, rng, window)
            else:
                vectors += _of_slide(encoder, slide, wanted, rng)
    if not vectors:
        raise BadInputError(f"calibration: group {name!r} holds no tissue")
    return np.stack(vectors)


def _of_slide(
    encoder: RegionEmbedder, slide: SlideImage, count: int, rng: np.random.Generator
) -> list[ArrayF32]:
    found = []
    for region in regions_of(slide, count, rng):
        with suppress(EmptyRegionError):
            found.append(encoder.embed_region(slide, region).vector)
    return found


def _of_still(
    encoder: RegionEmbedder,
    slide: SlideImage,
    count: int,
    rng: np.random.Generator,
    window: Window,
) -> list[ArrayF32]:
    """As a frame is embedded: with the field of view found on all of it."""
    image = slide.read_scaled((0, 0), (slide.info.width_px, slide.info.height_px), 1.0)
    found = []
    for square in islice(squares_seen(image, rng, window), count):
        with suppress(EmptyRegionError):
            found.append(encoder.embed_image(image, square).vector)
    return found

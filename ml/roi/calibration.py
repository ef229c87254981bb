"""Null distribution of an encoder's distances, from pairs of unrelated regions.

Regions are drawn at random inside tissue, at all scales, from groups of slides that share nothing
(organ, laboratory, patient), or inside the field of view of different operations. Each pair of
regions of two groups is an unrelated pair. Quantiles are stored next to the weights, see
``ml.index.ranking.calibration``.
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
from ml.imaging.slides.slide import SlideImage, open_slide
from ml.index.ranking.calibration import (
    Calibration,
    calibration_of,
    calibration_path,
    read_calibration,
    write_calibration,
)
from ml.keypoints.masks import scope_mask
from ml.roi.embedding import RegionEmbedding
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
    "random_tissue_regions",
    "read_calibration",
    "visible_squares",
    "write_calibration",
]

Window = tuple[float, float, float, float]
"""Left, top, right and bottom of a part of an image, as shares of its sides."""
FULL_WINDOW: Window = (0.0, 0.0, 1.0, 1.0)

PROBABILITIES = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15),
    *(0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
)
SIDE_UM = (224.0, 1500.0)
"""Sides of the regions drawn, log-uniform: from a single patch to several glands."""
SIDE_SHARE = (0.08, 0.4)
"""Sides of squares on endoscopic images, log-uniform, relative to the field of view, as the size
of a pixel is unknown."""
_MIN_TISSUE = 0.5  # share of a region, so that glass is not compared
_TRIES = 40  # for each region, before the slide counts as empty
_LOOK_PX = 128  # side of the preview in which tissue is measured


class RegionEmbedder(Protocol):
    """Interface that calibration needs of an encoder."""

    config_hash: str
    kind: str

    def embed_region(
        self, slide: SlideImage, polygon_l0: BaseGeometry | None, mpp: float | None = None
    ) -> RegionEmbedding:
        """See ``RoiEncoder.embed_region``."""
        ...

    def embed_image(self, image: ImageU8, polygon: BaseGeometry | None = None) -> RegionEmbedding:
        """See ``RegionEncoder.embed_image``."""
        ...


def fit_calibration(
    encoder: RegionEmbedder,
    groups: Mapping[str, Sequence[Path]],
    *,
    regions_per_group: int = 40,
    seed: int = 0,
    window: Window = FULL_WINDOW,
    progress: Progress = no_progress,
) -> Calibration:
    """Embed random regions of each group and take the quantiles of distances between groups.

    Args:
        groups: Files of slides or stills by group; two or more groups that share nothing.
        regions_per_group: Number of regions, distributed over the files of a group.
        window: Part of endoscopic stills that regions are drawn from, without burnt-in text.
    Raises:
        BadInputError: Fewer than two groups, a group without files or tissue, or too few pairs.
    """
    if len(groups) < 2:
        raise BadInputError(
            f"calibration: expected two unrelated groups or more, got {len(groups)}"
        )
    rng = np.random.default_rng(seed)
    vectors: dict[str, ArrayF32] = {}
    for number, (name, files) in enumerate(groups.items()):
        progress(number, len(groups), f"regions of {name}")
        vectors[name] = _embed_group(encoder, name, files, regions_per_group, rng, window)
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
    """Ascending distances (P,) float64 between vectors (N_i, D) of different groups."""
    parts = [
        cdist(a, b).ravel()
        for i, a in enumerate(groups)
        for b in groups[i + 1 :]
        if len(a) * len(b)
    ]
    return np.sort(np.concatenate(parts)) if parts else np.zeros(0)


def random_tissue_regions(
    slide: SlideImage, count: int, rng: np.random.Generator
) -> Iterator[BaseGeometry]:
    """Yield up to ``count`` random squares of tissue in level-0 pixels."""
    info = slide.info
    mpp = isotropic_mpp(info.mpp_x, info.mpp_y) or ASSUMED_MPP
    longest = min(info.width_px, info.height_px)
    region_count = 0
    for _ in range(count * _TRIES):
        side = min(float(np.exp(rng.uniform(*np.log(SIDE_UM)))) / mpp, longest)
        left = float(rng.uniform(0, info.width_px - side))
        top = float(rng.uniform(0, info.height_px - side))
        preview = slide.read_scaled((left, top), (side, side), max(1.0, side / _LOOK_PX))
        if tissue_share(preview) >= _MIN_TISSUE:
            yield box(left, top, left + side, top + side)
            region_count += 1
            if region_count == count:
                return


def visible_squares(
    image: ImageU8, rng: np.random.Generator, window: Window = FULL_WINDOW
) -> Iterator[BaseGeometry]:
    """Yield random squares inside the field of view of an endoscopic image (H, W, 3) uint8.

    Ends after ``_TRIES`` consecutive misses.
    """
    visible = scope_mask(np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.uint8))
    height, width = visible.shape
    left, top, right, bottom = np.array(window) * (width, height, width, height)
    rows, columns = np.flatnonzero(visible.any(axis=1)), np.flatnonzero(visible.any(axis=0))
    longest = min(np.ptp(rows), np.ptp(columns), right - left, bottom - top)
    n_misses = 0
    while n_misses < _TRIES:
        side = float(np.exp(rng.uniform(*np.log(SIDE_SHARE)))) * longest
        x, y = float(rng.uniform(left, right - side)), float(rng.uniform(top, bottom - side))
        n_misses += 1
        if visible[int(y) : int(y + side) + 1, int(x) : int(x + side) + 1].all():
            n_misses = 0
            yield box(x, y, x + side, y + side)


def _embed_group(  # noqa: PLR0917
    encoder: RegionEmbedder,
    name: str,
    files: Sequence[Path],
    count: int,
    rng: np.random.Generator,
    window: Window,
) -> ArrayF32:
    if not files:
        raise BadInputError(f"calibration: group {name!r} has no files")
    selected = [files[i] for i in rng.permutation(len(files))[:count]]
    per_file = -(-count // len(selected))
    vectors: list[ArrayF32] = []
    for path in selected:
        with open_slide(path) as slide:
            n_regions = min(per_file, count - len(vectors))
            if encoder.kind == "endoscopy":
                vectors += _embed_still(encoder, slide, n_regions, rng, window)
            else:
                vectors += _embed_slide(encoder, slide, n_regions, rng)
    if not vectors:
        raise BadInputError(f"calibration: group {name!r} holds no tissue")
    return np.stack(vectors)


def _embed_slide(
    encoder: RegionEmbedder, slide: SlideImage, count: int, rng: np.random.Generator
) -> list[ArrayF32]:
    vectors = []
    for region in random_tissue_regions(slide, count, rng):
        with suppress(EmptyRegionError):
            vectors.append(encoder.embed_region(slide, region).vector)
    return vectors


def _embed_still(
    encoder: RegionEmbedder,
    slide: SlideImage,
    count: int,
    rng: np.random.Generator,
    window: Window,
) -> list[ArrayF32]:
    """Embed regions of a still like a frame, with the field of view of the complete image."""
    image = slide.read_scaled((0, 0), (slide.info.width_px, slide.info.height_px), 1.0)
    vectors = []
    for square in islice(visible_squares(image, rng, window), count):
        with suppress(EmptyRegionError):
            vectors.append(encoder.embed_image(image, square).vector)
    return vectors

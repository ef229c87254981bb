"""Pairs of polar patches of the same key point in two synthetic views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from ml.errors import BadInputError
from ml.geometry import transform_points
from ml.keypoints.descriptors.polar import PolarGrid, polar_patches, visible_area
from ml.keypoints.detect import DetectorConfig, detect_keypoints
from ml.training.common.stills import read_still
from ml.training.tessera.views import TesseraViewConfig, degraded, random_homography, warped
from ml.types import ArrayF32, ImageU8


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """Configuration of pairs drawn from stills."""

    long_side_px: tuple[int, int] = (520, 1000)  # a still is shrunk to a side drawn from these
    stills: int = 57  # stills drawn for a round without repetition, at most
    views: int = 3  # pairs of views of a still that share one detection
    pairs: int = 288  # key points of a pair of views, at most
    detectors: tuple[str, ...] = ("sift", "akaze")  # one is drawn for each still
    unmasked: float = 0.25  # chance that a still's points may lie outside the field of view too
    random_points: float = 0.1  # random points of the image, as a share of those found
    jitter_px: float = 0.5  # deviation of the key point in the second view
    local: float = 0.6  # chance that the pairs of a part lie close together: hard negatives
    support: tuple[float, float] = (0.7, 2.2)  # factors on the radius, the same in both views
    first_changed: float = 0.5  # chance that the first view is degraded as well
    second_changed: float = 0.9


@dataclass(frozen=True, slots=True)
class PolarPatchPairs:
    """Pairs of one still.

    Attributes:
        still: number of the still.
        a, b: (n, 2, R, T) float16 patches; row i of both is the same point.
        xy: (n, 2) float32, pixels of the first view.
        is_local: whether the points are neighbours of the first one, nearest first.
    """

    still: int
    a: np.ndarray
    b: np.ndarray
    xy: ArrayF32
    is_local: bool = False


def load_stills(
    files: Sequence[Path], blank: Sequence[tuple[float, float, float, float]]
) -> list[ImageU8]:
    """Read grey stills at full size, with burnt-in text made black.

    Args:
        blank: rectangles (x0, y0, x1, y1) as shares of width and height.
    Raises:
        BadInputError: there is no file, or one is not an image.
    """
    if not files:
        raise BadInputError("no still to train on")
    stills = []
    for path in files:
        grey = cv2.cvtColor(read_still(path), cv2.COLOR_RGB2GRAY)
        height, width = grey.shape
        for x0, y0, x1, y1 in blank:
            grey[int(y0 * height) : int(y1 * height), int(x0 * width) : int(x1 * width)] = 0
        stills.append(np.asarray(grey, np.uint8))
    return stills


def draw_pool(
    stills: Sequence[ImageU8],
    rng: np.random.Generator,
    *,
    pool: PoolConfig,
    view: TesseraViewConfig,
    grid: PolarGrid,
) -> list[PolarPatchPairs]:
    """Draw the pairs of one round: ``pool.views`` parts of each drawn still, in turn."""
    drawn = rng.permutation(len(stills))[: pool.stills]
    bases = []
    for number in drawn:
        base = _shrunk(stills[number], int(rng.integers(*pool.long_side_px)))
        bases.append((int(number), base, _points(base, rng, pool)))
    return [
        _part(number, base, xy, rng, pool=pool, view=view, grid=grid)
        for _ in range(pool.views)
        for number, base, xy in bases
    ]


def _part(
    number: int,
    base: ImageU8,
    xy: ArrayF32,
    rng: np.random.Generator,
    *,
    pool: PoolConfig,
    view: TesseraViewConfig,
    grid: PolarGrid,
) -> PolarPatchPairs:
    H_b_from_a = random_homography(rng, width=base.shape[1], height=base.shape[0], config=view)
    xy_b = transform_points(H_b_from_a, xy).astype(np.float32)
    image_b = warped(base, H_b_from_a, rng, view)
    image_a = degraded(base, rng, view) if rng.random() < pool.first_changed else base
    if rng.random() < pool.second_changed:
        image_b = degraded(image_b, rng, view)
    visible = rng.permutation(np.flatnonzero(_inside(base, xy) & _inside(base, xy_b)))
    is_local = rng.random() < pool.local and len(visible) > 0
    if is_local:
        visible = visible[np.argsort(np.hypot(*(xy[visible] - xy[visible[0]]).T), kind="stable")]
    visible = visible[: pool.pairs]
    noise = rng.normal(0, pool.jitter_px, (len(visible), 2)).astype(np.float32)
    low, high = np.log(pool.support)
    zoom = np.exp(rng.uniform(low, high, len(visible))).astype(np.float32)
    a = polar_patches(image_a, xy[visible], grid=grid, zoom=zoom).astype(np.float16)
    b = polar_patches(image_b, xy_b[visible] + noise, grid=grid, zoom=zoom).astype(np.float16)
    return PolarPatchPairs(number, a, b, xy[visible], is_local)


def _shrunk(still: ImageU8, long_side_px: int) -> ImageU8:
    factor = min(1.0, long_side_px / max(still.shape))
    size = (round(still.shape[1] * factor), round(still.shape[0] * factor))
    return np.asarray(cv2.resize(still, size, interpolation=cv2.INTER_AREA), np.uint8)


def _points(base: ImageU8, rng: np.random.Generator, pool: PoolConfig) -> ArrayF32:
    """(N, 2) float32 detected and random points, without duplicates, ordered by x."""
    name = pool.detectors[int(rng.integers(len(pool.detectors)))]
    everywhere = rng.random() < pool.unmasked
    mask = np.ones_like(base) if everywhere else visible_area(base)
    keypoints = detect_keypoints(
        base,
        config=DetectorConfig(
            name=name, max_keypoints=4 * pool.pairs, equalised=not everywhere, fill_share=1.0
        ),
        mask=mask * np.uint8(255),
    )
    extra = rng.random((int(pool.random_points * len(keypoints)), 2)) * [
        base.shape[1],
        base.shape[0],
    ]
    both = np.concatenate([keypoints.xy, extra.astype(np.float32)])
    return np.asarray(np.unique(both, axis=0), np.float32)


def _inside(grey: ImageU8, xy: ArrayF32) -> np.ndarray:
    """(N,) bool: whether points are inside the image."""
    height, width = grey.shape
    return np.asarray(((xy >= 0) & (xy <= [width - 1, height - 1])).all(axis=1))

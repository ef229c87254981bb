"""Dense matching of the patches of two images by ``vit``, without a detector.

Source: dinov2-adaptation-endoscopic-matching, section III-A, equations 5 to 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from torch import Tensor

from ml.errors import BadInputError
from ml.keypoints.descriptors.phase import refine_shift
from ml.keypoints.descriptors.vit import VitDescriptor, load, sample_rows
from ml.keypoints.pixels import to_grey
from ml.types import ArrayF32, ArrayI64, ImageU8, Matches

THRESHOLD = 0.95
"""Similarity threshold of the paper (after eq. 6)."""

RATIO = 0.8
"""Ratio with most matches of synthetic pairs at 3 % errors: twice as many as with a similarity
threshold (``rules`` of ``train vit``)."""

MIN_WINDOW_PX = 8
"""Smallest window for phase correlation."""

_BLOCK = 1024
"""Rows of a per block: 16 MB with 4,096 rows of b."""

_ROUNDING = 1e-3
"""Tolerance: distances of equal unit vectors in float32 are up to a third of it."""


@dataclass(frozen=True, slots=True)
class DenseConfig:
    """Configuration of ``match_dense``, with the variants of table III of the paper.

    Attributes:
        ratio: Largest value of ``distance_ratios``; 0 for no test.
        threshold: Smallest similarity, the only test of the paper. The similarity of corresponding
            patches depends on the motion, so a fixed threshold prefers static structures such as
            the rim of the scope.
        refine: Refine by phase correlation, eq. 7-8.
        window_px: Side of its windows, in pixels of the network input; a patch in the paper.
        min_peak: Smallest correlation of a refined match; above 0 was worse.
        resample: Factor of bilinear upsampling of the maps ("+ feature resampling": 2).
    """

    ratio: float = RATIO
    threshold: float = -1.0
    refine: bool = True
    window_px: int = 48
    min_peak: float = 0.0
    resample: int = 1

    @staticmethod
    def paper_protocol(*, refine: bool = True, resample: int = 1) -> DenseConfig:
        """Configuration of the paper."""
        return DenseConfig(ratio=0.0, threshold=THRESHOLD, refine=refine, resample=resample)


def match_dense(
    image_a: npt.NDArray[Any],
    image_b: npt.NDArray[Any],
    *,
    descriptor: VitDescriptor | None = None,
    config: DenseConfig | None = None,
) -> Matches:
    """Match the patches of two images, without a detector.

    Args:
        image_a, image_b: (H, W[, 1|3|4]), source and target, any sizes.
        descriptor: None for the shipped ``vit``.
        config: None for the default.
    Returns:
        Matches: Pixels of each image; the score is the similarity, highest first. Points of a are
        refined, points of b are patch centres.
    Raises:
        BadInputError: A value out of range.
        ShapeError: Not an image.
    Source: dinov2-adaptation-endoscopic-matching, eq. 5-8.
    """
    config, descriptor = config or DenseConfig(), descriptor or load("vit")
    if config.resample < 1 or config.window_px < MIN_WINDOW_PX:
        raise BadInputError(
            f"resample, window_px: expected at least 1 and {MIN_WINDOW_PX},"
            f" got {config.resample} and {config.window_px}"
        )
    (map_a, scale_a), (map_b, scale_b) = (descriptor.describe_map(i) for i in (image_a, image_b))
    step_px = descriptor.network.patch_px / config.resample
    rows_a, positions_a = _grid(map_a, step_px, config.resample)
    rows_b, positions_b = _grid(map_b, step_px, config.resample)
    pairs, similarity = mutual_patches(rows_a, rows_b)
    mask = similarity > config.threshold
    if config.ratio:
        min_rival_px = descriptor.network.patch_px
        mask &= (
            distance_ratios(rows_a, rows_b, pairs, positions_b, min_rival_px=min_rival_px)
            < config.ratio
        )
    order = np.argsort(-similarity[mask], kind="stable")
    pairs, similarity = pairs[mask][order], similarity[mask][order]
    xy_a, xy_b = positions_a[pairs[:, 0]], positions_b[pairs[:, 1]]
    if config.refine and len(pairs):
        xy_a = xy_a + _refine(descriptor, (image_a, image_b), (xy_a, xy_b), config)
    return Matches(_from_input(xy_a, scale_a), _from_input(xy_b, scale_b), similarity)


def mutual_patches(a: ArrayF32, b: ArrayF32) -> tuple[ArrayI64, ArrayF32]:
    """Find mutual most similar rows.

    Args:
        a, b: (N, E) and (M, E), unit length.
    Returns:
        pairs: (K, 2) int64, ordered by row of a.
        similarity: (K,) float32.
    Source: dinov2-adaptation-endoscopic-matching, eq. 5-6.
    """
    if not len(a) or not len(b):
        return np.zeros((0, 2), np.int64), np.zeros(0, np.float32)
    best_of_a, value = np.zeros(len(a), np.int64), np.zeros(len(a), np.float32)
    best_of_b, best = np.zeros(len(b), np.int64), np.full(len(b), -np.inf, np.float32)
    for start in range(0, len(a), _BLOCK):
        block = a[start : start + _BLOCK] @ b.T
        best_of_a[start : start + len(block)] = block.argmax(axis=1)
        value[start : start + len(block)] = block.max(axis=1)
        row, top = block.argmax(axis=0), block.max(axis=0)
        better = top > best
        best_of_b[better], best[better] = row[better] + start, top[better]
    mutual = np.flatnonzero(best_of_b[best_of_a] == np.arange(len(a)))
    return np.stack([mutual, best_of_a[mutual]], axis=1), value[mutual]


def distance_ratios(
    a: ArrayF32, b: ArrayF32, pairs: ArrayI64, positions_b: ArrayF32, *, min_rival_px: float
) -> ArrayF32:
    """Ratio of the distance of each match to that of the nearest row elsewhere.

    Args:
        a, b: (N, E) and (M, E), unit length.
        pairs: (K, 2) rows of both.
        positions_b: (M, 2) positions of the rows of b.
        min_rival_px: Rows of b within this distance of the match, along each axis, are excluded, as
            neighbouring patches overlap.
    Returns:
        (K,) float32 in 0 to 1; 0 if there is no other row.
    Source: Lowe 2004, section 7.1; departs from it by the exclusion of neighbours.
    """
    ratios = np.zeros(len(pairs), np.float32)
    for start in range(0, len(pairs), _BLOCK):
        block = pairs[start : start + _BLOCK]
        similarity = a[block[:, 0]] @ b.T
        match_similarity = similarity[np.arange(len(block)), block[:, 1]].copy()
        distance_px = np.abs(positions_b[None] - positions_b[block[:, 1], None]).max(axis=2)
        similarity[distance_px <= min_rival_px] = -np.inf
        match_distance = np.sqrt(np.maximum(2 - 2 * match_similarity, 0))
        rival_distance = np.sqrt(np.maximum(2 - 2 * similarity.max(axis=1, initial=-np.inf), 0))
        ratios[start : start + len(block)] = (match_distance + _ROUNDING) / (
            rival_distance + _ROUNDING
        )
    return ratios


def _from_input(xy: ArrayF32, scale: tuple[float, float]) -> ArrayF32:
    return np.asarray((xy + 0.5) / np.array(scale) - 0.5, np.float32)


def _grid(features: Tensor, step_px: float, resample: int) -> tuple[ArrayF32, ArrayF32]:
    """Unit rows on a regular grid, and their positions (K, 2) in the input."""
    rows, columns = np.mgrid[: features.shape[1] * resample, : features.shape[2] * resample].astype(
        np.float32
    )
    xy = np.stack([columns.ravel(), rows.ravel()], axis=1)
    xy = np.asarray((xy + 0.5) * step_px - 0.5, np.float32)
    if resample == 1:
        return features.flatten(1).T.contiguous().numpy(), xy
    return sample_rows(features, xy, step_px * resample), xy


def _refine(
    descriptor: VitDescriptor,
    images: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    points: tuple[ArrayF32, ArrayF32],
    config: DenseConfig,
) -> ArrayF32:
    """Shift (K, 2) of the points of a, in pixels of the network input."""
    windows = [
        _windows(to_grey(descriptor.network_input(image)[0]), xy, config.window_px)
        for image, xy in zip(images, points, strict=True)
    ]
    reach = descriptor.network.patch_px // 2
    reach = min(reach, config.window_px // 2 - 2)
    return refine_shift(*windows, reach_px=reach, min_peak=config.min_peak)


def _windows(grey: ImageU8, xy: ArrayF32, side: int) -> npt.NDArray[np.float64]:
    """Bilinear windows (K, side, side) centred on points, with reflected border."""
    offset = np.arange(side, dtype=np.float32) - (side - 1) / 2
    x = (xy[:, 0, None, None] + offset[None, None, :]).repeat(side, axis=1)
    y = (xy[:, 1, None, None] + offset[None, :, None]).repeat(side, axis=2)
    rows = [
        cv2.remap(grey.astype(np.float32), u, v, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
        for u, v in zip(x, y, strict=True)
    ]
    return np.asarray(np.stack(rows), np.float64)

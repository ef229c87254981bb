"""Match the patches of two images, without a detector: the protocol of the ``vit`` paper, and ours.

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
"""Similarity above which the paper keeps a patch match (after eq. 6)."""

CALIBRATED = 0.8
"""Similarity that keeps the most matches of synthetic pairs with at most 3 of 100 wrong."""

RATIO = 0.8
"""The same for the ratio, which keeps twice as many (the ``rules`` of ``train vit``)."""

MIN_WINDOW_PX = 8
"""A smaller window holds no phase to correlate."""

_BLOCK = 1024
"""Rows of a compared with all of b at once: with 4,096 of them 16 MB."""

_ROUNDING = 1e-3
"""Distances of equal unit vectors in float32 come out up to a third of it."""


@dataclass(frozen=True, slots=True)
class DenseConfig:
    """Switches of ``match_dense``: the rows of the paper's table III, and the rule of a match.

    Attributes:
        ratio: see ``distance_ratios``; matches below it are kept. 0: no such test.
        threshold: least similarity. The paper has this rule alone: ``DenseConfig.of_the_paper()``.
            How similar the patches of two true places are depends on how far the camera moved, so
            one threshold for all pairs keeps what stands still, as the rim of the scope does.
        refine: phase correlation, eq. 7-8.
        window_px: side of its windows, in pixels of the network's input; the paper takes the patch.
        min_peak: windows that agree less stay where they are; above 0 measured worse.
        resample: maps are sampled this many times finer, bilinear ("+ feature resampling": 2).
    """

    ratio: float = RATIO
    threshold: float = -1.0
    refine: bool = True
    window_px: int = 48
    min_peak: float = 0.0
    resample: int = 1

    @staticmethod
    def of_the_paper(*, refine: bool = True, resample: int = 1) -> DenseConfig:
        """The protocol of the paper, with its switches."""
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
        descriptor: the shipped ``vit`` by default. config: ours by default.
    Returns:
        Matches: pixels of each image, score = similarity, highest first; the points of a are the
        refined ones, those of b are patch centres.
    Raises:
        BadInputError: a switch out of range. ShapeError: what is not an image.
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
    rows_a, at_a = _grid(map_a, step_px, config.resample)
    rows_b, at_b = _grid(map_b, step_px, config.resample)
    pairs, similarity = mutual_patches(rows_a, rows_b)
    sure = similarity > config.threshold
    if config.ratio:
        apart = descriptor.network.patch_px
        sure &= distance_ratios(rows_a, rows_b, pairs, at_b, apart=apart) < config.ratio
    order = np.argsort(-similarity[sure], kind="stable")
    pairs, similarity = pairs[sure][order], similarity[sure][order]
    xy_a, xy_b = at_a[pairs[:, 0]], at_b[pairs[:, 1]]
    if config.refine and len(pairs):
        xy_a = xy_a + _refinement(descriptor, (image_a, image_b), (xy_a, xy_b), config)
    return Matches(_from_input(xy_a, scale_a), _from_input(xy_b, scale_b), similarity)


def mutual_patches(a: ArrayF32, b: ArrayF32) -> tuple[ArrayI64, ArrayF32]:
    """Rows that are each other's most similar.

    Args:
        a: (N, E), b: (M, E), unit length.
    Returns:
        pairs: (K, 2) int64, ordered by row of a. similarity: (K,) float32.
    Source: dinov2-adaptation-endoscopic-matching, eq. 5-6.
    """
    if not len(a) or not len(b):
        return np.zeros((0, 2), np.int64), np.zeros(0, np.float32)
    there, value = np.zeros(len(a), np.int64), np.zeros(len(a), np.float32)
    back, best = np.zeros(len(b), np.int64), np.full(len(b), -np.inf, np.float32)
    for start in range(0, len(a), _BLOCK):
        block = a[start : start + _BLOCK] @ b.T
        there[start : start + len(block)] = block.argmax(axis=1)
        value[start : start + len(block)] = block.max(axis=1)
        row, top = block.argmax(axis=0), block.max(axis=0)
        better = top > best
        back[better], best[better] = row[better] + start, top[better]
    mutual = np.flatnonzero(back[there] == np.arange(len(a)))
    return np.stack([mutual, there[mutual]], axis=1), value[mutual]


def distance_ratios(
    a: ArrayF32, b: ArrayF32, pairs: ArrayI64, at_b: ArrayF32, *, apart: float
) -> ArrayF32:
    """How much nearer the match of a row is than the best of all that lie elsewhere.

    Args:
        a: (N, E), b: (M, E), unit length. pairs: (K, 2) rows of both. at_b: (M, 2) positions.
        apart: what lies within so much of the match, along each axis, is no rival: neighbouring
            patches look alike because they overlap.
    Returns:
        (K,) distance to the match over that to the nearest rival: 0 is beyond doubt, as where
        there is no rival, 1 a guess.
    Source: Lowe 2004, section 7.1; rivals by place, as neighbours are no other point.
    """
    ratios = np.zeros(len(pairs), np.float32)
    for start in range(0, len(pairs), _BLOCK):
        block = pairs[start : start + _BLOCK]
        similarity = a[block[:, 0]] @ b.T
        own = similarity[np.arange(len(block)), block[:, 1]].copy()
        away = np.abs(at_b[None] - at_b[block[:, 1], None]).max(axis=2)
        similarity[away <= apart] = -np.inf
        near = np.sqrt(np.maximum(2 - 2 * own, 0))
        rival = np.sqrt(np.maximum(2 - 2 * similarity.max(axis=1, initial=-np.inf), 0))
        ratios[start : start + len(block)] = (near + _ROUNDING) / (rival + _ROUNDING)
    return ratios


def _from_input(xy: ArrayF32, scale: tuple[float, float]) -> ArrayF32:
    return np.asarray((xy + 0.5) / np.array(scale) - 0.5, np.float32)


def _grid(features: Tensor, step_px: float, resample: int) -> tuple[ArrayF32, ArrayF32]:
    """Unit rows on a regular grid of the input, and its (K, 2) positions there."""
    rows, columns = np.mgrid[: features.shape[1] * resample, : features.shape[2] * resample].astype(
        np.float32
    )
    xy = np.stack([columns.ravel(), rows.ravel()], axis=1)
    xy = np.asarray((xy + 0.5) * step_px - 0.5, np.float32)
    if resample == 1:
        return features.flatten(1).T.contiguous().numpy(), xy
    return sample_rows(features, xy, step_px * resample), xy


def _refinement(
    descriptor: VitDescriptor,
    images: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    points: tuple[ArrayF32, ArrayF32],
    config: DenseConfig,
) -> ArrayF32:
    """(K, 2) shift of the points of a, in pixels of the network's input."""
    windows = [
        _windows(to_grey(descriptor.network_input(image)[0]), xy, config.window_px)
        for image, xy in zip(images, points, strict=True)
    ]
    reach = descriptor.network.patch_px // 2
    reach = min(reach, config.window_px // 2 - 2)
    return refine_shift(*windows, reach_px=reach, min_peak=config.min_peak)


def _windows(grey: ImageU8, xy: ArrayF32, side: int) -> npt.NDArray[np.float64]:
    """(K, side, side) windows centred on points, bilinear, the border mirrored."""
    offset = np.arange(side, dtype=np.float32) - (side - 1) / 2
    x = (xy[:, 0, None, None] + offset[None, None, :]).repeat(side, axis=1)
    y = (xy[:, 1, None, None] + offset[None, :, None]).repeat(side, axis=2)
    rows = [
        cv2.remap(grey.astype(np.float32), u, v, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
        for u, v in zip(x, y, strict=True)
    ]
    return np.asarray(np.stack(rows), np.float64)

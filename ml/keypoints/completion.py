"""Refine matches to sub-pixel places, and complete them where b has no key point."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ml.keypoints.consensus import Consensus
from ml.keypoints.guided import predict_points
from ml.keypoints.refine import AlignConfig, Alignment, align_patches, smoothed
from ml.keypoints.views import View
from ml.types import ArrayBool, ArrayF32, Matches


@dataclass(frozen=True, slots=True)
class CompletionConfig:
    """When an alignment is trusted.

    Attributes:
        align: the fine alignment.
        max_shift_px: a refined place may move by so much.
        min_zncc: least correlation of a refined match.
        complete_zncc: least correlation of a match found by alignment alone.
        complete_shift_px: it may end so far from its predicted place.
        max_noise_px: largest predicted standard error of a completed match (edges, flat tissue).
    """

    align: AlignConfig = field(default_factory=AlignConfig)
    max_shift_px: float = 3.0
    min_zncc: float = 0.6
    complete_zncc: float = 0.85
    complete_shift_px: float = 4.0
    max_noise_px: float = 0.3


def refine_matches(
    view_a: View,
    view_b: View,
    matches: Matches,
    consensus: Consensus,
    *,
    config: CompletionConfig = CompletionConfig(),
) -> Matches:
    """Move each place in b to where its patch fits best; keep it where the fit is poor."""
    _, jacobian, _ = predict_points(consensus, matches.xy_a)
    planes = [smoothed(v.grey, config.align.smooth_px) for v in (view_a, view_b)]
    found = align_patches(
        planes[0],
        planes[1],
        matches.xy_a.astype(np.float64),
        matches.xy_b.astype(np.float64),
        jacobian,
        config=config.align,
    )
    moved = np.hypot(*(found.xy_b - matches.xy_b).T)
    good = found.is_converged & (moved <= config.max_shift_px) & (found.zncc >= config.min_zncc)
    xy_b = np.where(good[:, None], found.xy_b, matches.xy_b).astype(np.float32)
    score = 0.5 * matches.score + 0.5 * np.clip(found.zncc, 0.0, 1.0)
    return Matches(matches.xy_a, xy_b, score.astype(np.float32))


def complete_matches(
    view_a: View,
    view_b: View,
    xy_a: ArrayF32,
    consensus: Consensus,
    *,
    config: CompletionConfig = CompletionConfig(),
) -> Matches:
    """Find key points of a in b by alignment alone, from their predicted places."""
    places, jacobian, spread = predict_points(consensus, xy_a)
    size = np.array([view_b.grey.shape[1] - 1, view_b.grey.shape[0] - 1])
    inside = ((places >= 0) & (places <= size)).all(axis=1)
    xy_a, places, jacobian, spread = xy_a[inside], places[inside], jacobian[inside], spread[inside]
    planes = [smoothed(v.grey, config.align.smooth_px) for v in (view_a, view_b)]
    found = align_patches(
        planes[0], planes[1], xy_a.astype(np.float64), places, jacobian, config=config.align
    )
    keep = _trusted(found, np.hypot(*(found.xy_b - places).T), view_b, config)
    score = np.clip(0.5 * found.zncc[keep], 0.0, 1.0)
    return Matches(xy_a[keep], found.xy_b[keep].astype(np.float32), score.astype(np.float32))


def _trusted(
    found: Alignment, moved: np.ndarray, view_b: View, config: CompletionConfig
) -> ArrayBool:
    at = np.rint(found.xy_b).astype(np.int64)
    at = np.clip(at, 0, (view_b.grey.shape[1] - 1, view_b.grey.shape[0] - 1))
    visible = view_b.mask[at[:, 1], at[:, 0]]
    return np.asarray(
        found.is_converged
        & visible
        & (moved <= config.complete_shift_px)
        & (found.zncc >= config.complete_zncc)
        & (found.noise_px <= config.max_noise_px)
    )

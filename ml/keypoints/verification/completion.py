"""Refine matches to sub-pixel positions, and complete them where b has no key point."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from ml.keypoints.parallel import both
from ml.keypoints.verification.patch_alignment import (
    AlignConfig,
    PatchAlignment,
    align_patches,
    smoothed,
)
from ml.keypoints.verification.two_view_model import TwoViewModel
from ml.keypoints.views import WorkingView
from ml.types import ArrayBool, ArrayF32, ArrayF64, Matches


@dataclass(frozen=True, slots=True)
class CompletionConfig:
    """When an alignment is trusted; chosen on the development sequences (docs/models/keypoints.md).

    Attributes:
        align: the fine alignment.
        max_shift_px: a position is refined by so much at most.
        min_zncc: least correlation of a refined match.
        complete_zncc: least correlation of a match found by alignment alone; more is asked, for no
            descriptor agrees with it.
        complete_shift_px: it may end so far from its predicted position.
        max_noise_px: largest predicted standard error of a completed match (edges, flat tissue).
        step_side_px: patches of views of this root area are sampled at every pixel; of larger
            ones in proportion coarser.
    """

    align: AlignConfig = field(default_factory=AlignConfig)
    max_shift_px: float = 3.0
    min_zncc: float = 0.6
    complete_zncc: float = 0.85
    complete_shift_px: float = 4.0
    max_noise_px: float = 0.3
    step_side_px: float = 650.0


@dataclass(frozen=True, slots=True)
class SmoothPair:
    """Two views ready for alignment from a to b.

    Attributes:
        view_a, view_b: the views. plane_a, plane_b: (h, w) float32, their smoothed grey.
        config: when an alignment is trusted.
        align: the alignment, its patches grown with view b so that they hold the same tissue.
    """

    view_a: WorkingView
    view_b: WorkingView
    plane_a: ArrayF32
    plane_b: ArrayF32
    config: CompletionConfig
    align: AlignConfig

    def inverse(self) -> SmoothPair:
        """From b to a; the smoothed planes serve again where both views ask for the same step."""
        step_px = _step_px(self.view_a, self.config)
        if step_px != self.align.step_px:
            return smooth_pair(self.view_b, self.view_a, config=self.config)
        return replace(
            self,
            view_a=self.view_b,
            view_b=self.view_a,
            plane_a=self.plane_b,
            plane_b=self.plane_a,
        )

    def aligned(
        self, xy_a: ArrayF32, xy_b: npt.NDArray[np.floating], jacobian: ArrayF64
    ) -> PatchAlignment:
        """``align_patches`` of (N, 2) points, with (N, 2, 2) local maps."""
        return align_patches(
            self.plane_a,
            self.plane_b,
            xy_a.astype(np.float64),
            np.asarray(xy_b, np.float64),
            jacobian,
            config=self.align,
        )


def smooth_pair(
    view_a: WorkingView, view_b: WorkingView, *, config: CompletionConfig = CompletionConfig()
) -> SmoothPair:
    """Smooth both views, once for all alignments between them."""
    step_px = _step_px(view_b, config)
    align = replace(config.align, step_px=step_px, smooth_px=step_px * config.align.smooth_px)
    plane_a, plane_b = both(lambda v: smoothed(v.grey, align.smooth_px), view_a, view_b)
    return SmoothPair(view_a, view_b, plane_a, plane_b, config, align)


def refine_matches(pair: SmoothPair, matches: Matches, model: TwoViewModel) -> Matches:
    """Move each position in b to where its patch fits best; keep it where the fit is poor.

    Returns:
        Matches: the same points of a in the same order; every score is written again, the mean of
        the old one and of the patch's correlation (not below 0), whether the position moved or not.
    """
    config = pair.config
    jacobian = model.predict(matches.xy_a).jacobian
    found = pair.aligned(matches.xy_a, matches.xy_b, jacobian)
    moved = np.hypot(*(found.xy_b - matches.xy_b).T)
    good = found.is_converged & (moved <= config.max_shift_px) & (found.zncc >= config.min_zncc)
    xy_b = np.where(good[:, None], found.xy_b, matches.xy_b).astype(np.float32)
    score = 0.5 * matches.score + 0.5 * np.clip(found.zncc, 0.0, 1.0)
    return Matches(matches.xy_a, xy_b, score.astype(np.float32))


def complete_matches(pair: SmoothPair, xy_a: ArrayF32, model: TwoViewModel) -> Matches:
    """Find (N, 2) key points of a in b by alignment alone, from their predicted positions.

    Returns:
        Matches: those whose alignment is trusted and agrees with the model; half the correlation
        is their score, as of a refined match whose descriptors tell nothing.
    """
    predicted = model.predict(xy_a)
    start, jacobian = predicted.xy_b, predicted.jacobian
    view_b = pair.view_b
    size = np.array([view_b.grey.shape[1] - 1, view_b.grey.shape[0] - 1])
    inside = ((start >= 0) & (start <= size)).all(axis=1)
    xy_a, start, jacobian = xy_a[inside], start[inside], jacobian[inside]
    found = pair.aligned(xy_a, start, jacobian)
    moved = np.hypot(*(found.xy_b - start).T)
    xy_b = found.xy_b.astype(np.float32)
    keep = _trusted(found, moved, view_b, pair.config) & model.agrees(xy_a, xy_b)
    score = np.clip(0.5 * found.zncc[keep], 0.0, 1.0)
    return Matches(xy_a[keep], xy_b[keep], score.astype(np.float32))


def apart_from(xy: ArrayF32, others: ArrayF32, *, distance_px: float) -> ArrayBool:
    """(N,) bool: points with none of the others nearer than ``distance_px``."""
    if not len(others) or not len(xy):
        return np.ones(len(xy), np.bool_)
    nearest, _ = cKDTree(others).query(xy)
    return np.asarray(nearest >= distance_px, np.bool_)


def _step_px(view: WorkingView, config: CompletionConfig) -> float:
    """Pixels of the view between two samples of a patch."""
    return max(1.0, float(np.sqrt(view.grey.size)) / config.step_side_px)


def _trusted(
    found: PatchAlignment, moved: ArrayF64, view_b: WorkingView, config: CompletionConfig
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

"""Sub-pixel refinement of matches, and completion by alignment without key points in b."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from ml.keypoints.parallel import run_both
from ml.keypoints.verification.patch_alignment import (
    AlignConfig,
    PatchAlignment,
    align_patches,
    smooth_plane,
)
from ml.keypoints.verification.two_view_model import TwoViewModel
from ml.keypoints.views import WorkingView
from ml.types import ArrayBool, ArrayF32, ArrayF64, Matches


@dataclass(frozen=True, slots=True)
class CompletionConfig:
    """Limits of trusted alignments; chosen on the development sequences (docs/models/keypoints.md).

    Attributes:
        align: Configuration of alignment.
        max_shift_px: Largest shift of a refined position.
        min_zncc: Smallest correlation of a refined match.
        complete_zncc: Smallest correlation of a match without a descriptor.
        complete_shift_px: Largest distance of such a match from its predicted position.
        max_noise_px: Largest predicted standard error of such a match (edges, flat tissue).
        step_side_px: Square root of the area of a view whose patches are sampled at each pixel;
            the step is proportional in larger views.
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
        view_a, view_b: The views.
        plane_a, plane_b: (h, w) float32, smoothed grey values.
        config: Limits of trusted alignments.
        align: Configuration of alignment, with a step for the size of view b.
    """

    view_a: WorkingView
    view_b: WorkingView
    plane_a: ArrayF32
    plane_b: ArrayF32
    config: CompletionConfig
    align: AlignConfig

    def inverse(self) -> SmoothPair:
        """Pair from b to a; the smoothed planes are reused if both views have the same step."""
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

    def align_points(
        self, xy_a: ArrayF32, xy_b: npt.NDArray[np.floating], jacobian: ArrayF64
    ) -> PatchAlignment:
        """Align points (N, 2) with Jacobians (N, 2, 2), see ``align_patches``."""
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
    """Smooth both views for alignments between them."""
    step_px = _step_px(view_b, config)
    align = replace(config.align, step_px=step_px, smooth_px=step_px * config.align.smooth_px)
    plane_a, plane_b = run_both(lambda v: smooth_plane(v.grey, align.smooth_px), view_a, view_b)
    return SmoothPair(view_a, view_b, plane_a, plane_b, config, align)


def refine_matches(pair: SmoothPair, matches: Matches, model: TwoViewModel) -> Matches:
    """Align the positions in b; positions with a poor alignment are not changed.

    Returns:
        Matches: The same points of a in the same order, with aligned positions in b. All scores are
        the mean of the previous score and the correlation (at least 0).
    """
    config = pair.config
    jacobian = model.predict(matches.xy_a).jacobian
    alignment = pair.align_points(matches.xy_a, matches.xy_b, jacobian)
    shift_px = np.hypot(*(alignment.xy_b - matches.xy_b).T)
    is_accepted = (
        alignment.is_converged
        & (shift_px <= config.max_shift_px)
        & (alignment.zncc >= config.min_zncc)
    )
    xy_b = np.where(is_accepted[:, None], alignment.xy_b, matches.xy_b).astype(np.float32)
    score = 0.5 * matches.score + 0.5 * np.clip(alignment.zncc, 0.0, 1.0)
    return Matches(matches.xy_a, xy_b, score.astype(np.float32))


def complete_matches(pair: SmoothPair, xy_a: ArrayF32, model: TwoViewModel) -> Matches:
    """Find key points (N, 2) of a in b by alignment from their predicted positions.

    Returns:
        Matches: Trusted alignments that agree with the model. The score is half the correlation.
    """
    predicted = model.predict(xy_a)
    start, jacobian = predicted.xy_b, predicted.jacobian
    view_b = pair.view_b
    size = np.array([view_b.grey.shape[1] - 1, view_b.grey.shape[0] - 1])
    inside = ((start >= 0) & (start <= size)).all(axis=1)
    xy_a, start, jacobian = xy_a[inside], start[inside], jacobian[inside]
    alignment = pair.align_points(xy_a, start, jacobian)
    shift_px = np.hypot(*(alignment.xy_b - start).T)
    xy_b = alignment.xy_b.astype(np.float32)
    keep = _is_trusted(alignment, shift_px, view_b, pair.config) & model.agrees(xy_a, xy_b)
    score = np.clip(0.5 * alignment.zncc[keep], 0.0, 1.0)
    return Matches(xy_a[keep], xy_b[keep], score.astype(np.float32))


def far_from(xy: ArrayF32, other_xy: ArrayF32, *, distance_px: float) -> ArrayBool:
    """Mask (N,) bool of points at least ``distance_px`` from all others."""
    if not len(other_xy) or not len(xy):
        return np.ones(len(xy), np.bool_)
    nearest, _ = cKDTree(other_xy).query(xy)
    return np.asarray(nearest >= distance_px, np.bool_)


def _step_px(view: WorkingView, config: CompletionConfig) -> float:
    """Pixels between two samples of a patch."""
    return max(1.0, float(np.sqrt(view.grey.size)) / config.step_side_px)


def _is_trusted(
    alignment: PatchAlignment, shift_px: ArrayF64, view_b: WorkingView, config: CompletionConfig
) -> ArrayBool:
    pixel = np.rint(alignment.xy_b).astype(np.int64)
    pixel = np.clip(pixel, 0, (view_b.grey.shape[1] - 1, view_b.grey.shape[0] - 1))
    visible = view_b.mask[pixel[:, 1], pixel[:, 0]]
    return np.asarray(
        alignment.is_converged
        & visible
        & (shift_px <= config.complete_shift_px)
        & (alignment.zncc >= config.complete_zncc)
        & (alignment.noise_px <= config.max_noise_px)
    )

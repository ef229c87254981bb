"""Stage 4, optimise: all transforms at once, robust, sparse, weighted by information."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from ml.geometry import transform_points
from ml.mosaic.alignment.normal_equations import (
    AdjustmentProblem,
    make_problem,
    normal_equations,
    project,
    robust_cost,
    unit_state,
)
from ml.mosaic.registration.links import Link
from ml.mosaic.registration.motion_model import SIMILAR, motion_generators
from ml.types import ArrayBool, ArrayF64, ArrayI64

MAX_ITERATIONS = 25
"""Largest number of Gauss-Newton iterations; it stops earlier on convergence."""

DAMPING = 1e-8
"""Almost none at first: it would suppress the slow bends that only a long sweep shows."""

STOP_PX = 1e-3
"""A largest step under this cannot be seen."""


@dataclass(frozen=True)
class Adjustment:
    """Adjusted transforms, and how well each is known.

    Attributes:
        transforms: frame -> (3, 3) float64, working px to the map's, ``matrix[2, 2] == 1``; in the
            middle of the anchor's view the map has the anchor's position, scale and direction.
        generators: (K, 3, 3), the directions in which a transform may change.
        anchor: position of the anchor.
    """

    transforms: dict[int, ArrayF64]
    generators: ArrayF64
    anchor: int
    problem: AdjustmentProblem

    @property
    def unit(self) -> ArrayF64:
        """(3, 3), unit coordinates (middle of the view, radius 1) to working px."""
        return self.problem.from_unit

    @cached_property
    def covariance(self) -> dict[int, ArrayF64]:
        """Covariance of each frame: frame -> (K, K) float64 of its increments on the right, unit
        coordinates.

        Scaled by the spread of the residuals; zero for the anchor's position, scale and direction.
        Expensive: call it once, at the end.
        """
        frames = list(self.transforms)
        state = unit_state(self.transforms, self.problem)
        fixed = frames.index(self.anchor)
        blocks = _covariances(state, self.problem, self.generators, fixed)
        return dict(zip(frames, blocks, strict=True))


def adjust_transforms(
    placed: dict[int, ArrayF64],
    links: Sequence[Link],
    anchor: int,
    *,
    model: str,
    mask: ArrayBool,
) -> Adjustment:
    """Minimise the robust, weighted reprojection error of all links' points over all transforms.

    The residual of a link is measured in the plane of its own frame b, so that shrinking the
    mosaic does not pay; the middle of the anchor's view stays put. Gauss-Newton with increments on
    the right, ``A <- A (I + D)``, D from the model's generators; Cauchy weights; Levenberg damping,
    hardly any to begin with.

    Args:
        placed: frame -> (3, 3) start, working px to the anchor's.
    Returns:
        Adjustment: the same frames.
    Source: Triggs et al. 2000, sections 4 and 6 (robust, sparse normal equations; inner
        covariance by the a-posteriori variance factor).
    """
    frames = sorted(placed)
    problem = make_problem(links, {f: i for i, f in enumerate(frames)}, mask)
    generators = motion_generators(model)
    state = unit_state({f: placed[f] for f in frames}, problem)
    state = _descend(state, problem, generators, frames.index(anchor))
    back = problem.from_unit @ state @ problem.to_unit
    transforms = {f: matrix / matrix[2, 2] for f, matrix in zip(frames, back, strict=True)}
    return Adjustment(transforms, generators, anchor, problem)


def link_residuals(link: Link, placed: dict[int, ArrayF64]) -> ArrayF64:
    """(P,) float64 working px: distance of a's points, carried over the mosaic, to b's."""
    matrix = np.linalg.solve(placed[link.b], placed[link.a])
    return np.asarray(np.hypot(*(transform_points(matrix, link.xy_a) - link.xy_b).T))


def _descend(
    state: ArrayF64, problem: AdjustmentProblem, generators: ArrayF64, fixed: int
) -> ArrayF64:
    cost, damping = robust_cost(state, problem), DAMPING
    for _ in range(MAX_ITERATIONS):
        normal, right = normal_equations(state, problem, generators)
        step = _solve_step(normal, right, fixed=fixed, k=len(generators), damping=damping)
        trial = state @ (np.eye(3) + np.einsum("nk,kij->nij", step, generators))
        trial = trial / trial[:, 2:, 2:]
        trial_cost = robust_cost(trial, problem)
        if not np.isfinite(trial_cost) or trial_cost > cost:
            damping *= 10
            if damping > 1e6:
                break
            continue
        gained, state, cost, damping = cost - trial_cost, trial, trial_cost, max(damping / 5, 1e-9)
        if gained < 1e-6 * cost or float(np.max(np.abs(step))) * problem.unit_px < STOP_PX:
            break
    return state


def _free_indices(n: int, k: int, fixed: int) -> ArrayI64:
    """Indices of the parameters to solve for; the anchor's similarity part is held at zero."""
    start = fixed * k
    return np.asarray(np.r_[0:start, start + min(k, SIMILAR) : n * k], np.int64)


def _solve_step(
    normal: sparse.csc_matrix, right: ArrayF64, *, fixed: int, k: int, damping: float
) -> ArrayF64:
    """(n, K) increments: one damped Gauss-Newton step."""
    n = len(right) // k
    free = _free_indices(n, k, fixed)
    inner = normal[free][:, free]
    inner = inner + sparse.diags(damping * (inner.diagonal() + 1e-6))
    step = np.zeros(n * k)
    if len(free):
        step[free] = splu(inner.tocsc()).solve(-right[free])
    return step.reshape(n, k)


def _covariances(
    state: ArrayF64, problem: AdjustmentProblem, generators: ArrayF64, fixed: int
) -> ArrayF64:
    """(n, K, K): diagonal blocks of the inverse normal matrix times the variance factor."""
    n, k = len(state), len(generators)
    normal, _ = normal_equations(state, problem, generators)
    squared = np.concatenate(
        [(project(state, part)[2] ** 2).sum(axis=1) for part in problem.parts()]
    )
    # of a 2D normal, half of the squared lengths are under 2 ln 2
    factor = max(float(np.median(squared)) / (2 * np.log(2)), 1e-4)
    blocks = np.zeros((n, k, k))
    free = _free_indices(n, k, fixed)
    if not len(free):
        return blocks
    inner = normal[free][:, free]
    solver = splu((inner + sparse.diags(1e-9 * inner.diagonal() + 1e-12)).tocsc())
    first = np.searchsorted(free, np.arange(n + 1) * k)
    for i in range(n):
        block_rows = slice(first[i], first[i + 1])
        unit = np.zeros((len(free), k))[:, : block_rows.stop - block_rows.start]
        unit[block_rows] = np.eye(unit.shape[1])
        block = solver.solve(unit)[block_rows] if unit.shape[1] else unit[block_rows]
        parameters = free[block_rows] - i * k
        blocks[i][np.ix_(parameters, parameters)] = 0.5 * (block + block.T) * factor
    return blocks

"""Joint least-squares adjustment of all transforms over all links (sparse, robust)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spsolve

from ml.keypoints import transform_points
from ml.mosaic.register import Link
from ml.types import ArrayBool, ArrayF64, ArrayI64

CAUCHY_PX = 2.0
MAX_ITERATIONS = 25
DAMPING = 1e-3
STOP_PX = 1e-3


def adjust_transforms(
    placed: dict[int, ArrayF64],
    links: tuple[Link, ...],
    anchor: int,
    *,
    model: str,
    mask: ArrayBool,
) -> dict[int, ArrayF64]:
    """Minimise the robust reprojection error of all links' points over all transforms at once.

    The residual of a link is measured in the plane of its own frame b, so that shrinking the
    mosaic does not pay; the anchor stays put. Gauss-Newton with increments on the right,
    ``A <- A (I + D)``, D from the model's generators; Cauchy weights; Levenberg damping.

    Args:
        placed: frame -> (3, 3) start, working px to the anchor's.
    Returns:
        The same frames, adjusted; each matrix normalised to ``matrix[2, 2] == 1``.
    """
    frames = sorted(placed)
    problem = _problem(links, {f: i for i, f in enumerate(frames)}, mask)
    state = np.stack([problem.to_unit @ placed[f] @ problem.from_unit for f in frames])
    state = state / state[:, 2:, 2:]
    generators = _generators(model)
    fixed = frames.index(anchor)
    cost, damping = _cost(state, problem), DAMPING
    for _ in range(MAX_ITERATIONS):
        step = _step(state, problem, generators, fixed, damping)
        trial = state @ (np.eye(3) + np.einsum("nk,kij->nij", step, generators))
        trial = trial / trial[:, 2:, 2:]
        trial_cost = _cost(trial, problem)
        if not np.isfinite(trial_cost) or trial_cost > cost:
            damping *= 10
            if damping > 1e6:
                break
            continue
        gained, state, cost, damping = cost - trial_cost, trial, trial_cost, max(damping / 5, 1e-9)
        if gained < 1e-6 * cost or float(np.max(np.abs(step))) * problem.unit_px < STOP_PX:
            break
    back = problem.from_unit @ state @ problem.to_unit
    return {f: back[i] / back[i, 2, 2] for i, f in enumerate(frames)}


def link_residuals(link: Link, placed: dict[int, ArrayF64]) -> ArrayF64:
    """(P,) float64 working px: distance of a's points, carried over the mosaic, to b's."""
    matrix = np.linalg.solve(placed[link.b], placed[link.a])
    return np.asarray(np.hypot(*(transform_points(matrix, link.xy_a) - link.xy_b).T))


@dataclass(frozen=True, slots=True)
class _Problem:
    """All links' points in unit coordinates (centred on the view, radius 1), end to end."""

    a: ArrayI64
    b: ArrayI64
    starts: ArrayI64
    link: ArrayI64
    x: ArrayF64
    y: ArrayF64
    to_unit: ArrayF64
    from_unit: ArrayF64
    unit_px: float


def _problem(links: tuple[Link, ...], row: dict[int, int], mask: ArrayBool) -> _Problem:
    rows, columns = np.nonzero(mask)
    radius = 0.5 * max(float(np.ptp(rows)), float(np.ptp(columns)), 2.0)
    cx, cy = float(columns.mean()), float(rows.mean())
    from_unit = np.array([[radius, 0, cx], [0, radius, cy], [0, 0, 1.0]])
    used = [link for link in links if link.a in row and link.b in row]
    counts = np.array([len(link.xy_a) for link in used])
    one = np.ones((int(counts.sum()), 1))
    centre = np.array([cx, cy])
    x = np.hstack([(np.concatenate([link.xy_a for link in used]) - centre) / radius, one])
    return _Problem(
        a=np.array([row[link.a] for link in used]),
        b=np.array([row[link.b] for link in used]),
        starts=np.r_[0, np.cumsum(counts)[:-1]].astype(np.int64),
        link=np.repeat(np.arange(len(used)), counts),
        x=x,
        y=(np.concatenate([link.xy_b for link in used]) - centre) / radius,
        to_unit=np.linalg.inv(from_unit),
        from_unit=from_unit,
        unit_px=radius,
    )


def _generators(model: str) -> ArrayF64:
    """(K, 3, 3): the directions in which a transform may change."""
    basis = np.eye(9).reshape(9, 3, 3)
    if model == "similarity":
        return np.stack([basis[0] + basis[4], basis[3] - basis[1], basis[2], basis[5]])
    return basis[:6] if model == "affine" else basis[:8]


def _project(state: ArrayF64, problem: _Problem) -> tuple[ArrayF64, ArrayF64, ArrayF64]:
    """Per point: b^-1 a (3, 3), the projected homogeneous point, and the residual (2,)."""
    between = np.linalg.solve(state[problem.b], state[problem.a])
    relative: ArrayF64 = between[problem.link].astype(np.float64)
    point = np.einsum("pij,pj->pi", relative, problem.x)
    return relative, point, point[:, :2] / point[:, 2:] - problem.y


def _cost(state: ArrayF64, problem: _Problem) -> float:
    _, point, residual = _project(state, problem)
    if (point[:, 2] <= 0).any():
        return float("inf")
    squared = (residual**2).sum(axis=1) * (problem.unit_px / CAUCHY_PX) ** 2
    return float(np.log1p(squared).sum())


def _step(
    state: ArrayF64, problem: _Problem, generators: ArrayF64, fixed: int, damping: float
) -> ArrayF64:
    """(n, K) increments: one damped, reweighted Gauss-Newton step."""
    relative, point, residual = _project(state, problem)
    scale = problem.unit_px / CAUCHY_PX
    weight = 1.0 / (1.0 + (residual**2).sum(axis=1) * scale**2)
    projection = np.zeros((len(point), 2, 3))
    projection[:, 0, 0] = projection[:, 1, 1] = 1 / point[:, 2]
    projection[:, :, 2] = -point[:, :2] / point[:, 2:] ** 2
    moved_a = np.einsum("pij,kjl,pl->pik", relative, generators, problem.x, optimize=True)
    moved_b = np.einsum("kij,pj->pik", generators, point, optimize=True)
    ja = np.einsum("pri,pik->prk", projection, moved_a)
    jb = -np.einsum("pri,pik->prk", projection, moved_b)
    both = np.concatenate([ja, jb], axis=2)
    matrix, vector = _normal_equations(problem, both, residual, weight, n=len(state))
    k = generators.shape[0]
    free = np.r_[0 : fixed * k, (fixed + 1) * k : len(state) * k]
    inner = matrix[free][:, free]
    inner = inner + sparse.diags(damping * (inner.diagonal() + 1e-6))
    step = np.zeros(len(state) * k)
    step[free] = spsolve(inner.tocsc(), -vector[free])
    return step.reshape(len(state), k)


def _normal_equations(
    problem: _Problem, both: ArrayF64, residual: ArrayF64, weight: ArrayF64, *, n: int
) -> tuple[sparse.csc_matrix, ArrayF64]:
    """J^T W J and J^T W r; ``both`` holds each point's (2, 2K) derivatives by its two frames."""
    k = both.shape[2] // 2
    weighted = both * weight[:, None, None]
    normal = np.add.reduceat(np.einsum("prk,prl->pkl", weighted, both), problem.starts)
    right = np.add.reduceat(np.einsum("prk,pr->pk", weighted, residual), problem.starts)
    index = np.concatenate(
        [problem.a[:, None] * k + np.arange(k), problem.b[:, None] * k + np.arange(k)], axis=1
    )
    rows = np.repeat(index, 2 * k, axis=1).ravel()
    columns = np.tile(index, (1, 2 * k)).ravel()
    matrix = sparse.csc_matrix((normal.ravel(), (rows, columns)), shape=(n * k, n * k))
    vector = np.bincount(index.ravel(), right.ravel(), n * k)
    return matrix, vector.astype(np.float64)

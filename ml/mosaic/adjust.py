"""Stage 4, optimise: all transforms at once, robust, sparse, weighted by what each link knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from ml.geometry import transform_points
from ml.mosaic.links import Link
from ml.mosaic.motion_model import SIMILAR, motion_generators
from ml.types import ArrayBool, ArrayF64, ArrayI64

CAUCHY = 2.5
"""Standard deviations beyond which a point's pull begins to fade."""

FLOOR_PX = 0.3
"""What the planar model itself leaves open: no point is trusted to better than this."""

SHAPE_SIGMA, PERSPECTIVE_SIGMA = 0.3, 0.06
"""Weak pull of each frame, the anchor too, towards a similarity (view radius 1): it decides nothing
where links speak, keeps shear and perspective from running away along a long chain, and makes the
mosaic's plane the one that all frames together see the least tilted."""

MAX_ITERATIONS = 25
DAMPING = 1e-8
STOP_PX = 1e-3
_LINKS_AT_ONCE = 256


@dataclass(frozen=True)
class Adjustment:
    """Adjusted transforms, and how well each is known.

    Attributes:
        transforms: frame -> (3, 3) float64, working px to the map's, ``matrix[2, 2] == 1``; in the
            middle of the anchor's view the map has the anchor's place, scale and direction.
        generators: (K, 3, 3), the directions in which a transform may change.
        anchor: position of the anchor.
    """

    transforms: dict[int, ArrayF64]
    generators: ArrayF64
    anchor: int
    problem: _Problem

    @property
    def unit(self) -> ArrayF64:
        """(3, 3), unit coordinates (middle of the view, radius 1) to working px."""
        return self.problem.from_unit

    @cached_property
    def covariance(self) -> dict[int, ArrayF64]:
        """Frame -> (K, K) float64 of its increments on the right, unit coordinates, scaled by the

        residuals' own spread. Of the anchor's place, scale and direction it is zero. Dear: asked
        for once, at the end.
        """
        frames = list(self.transforms)
        state = _state(self.transforms, self.problem)
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
    hardly any to begin with: it would hold back the slow bends that only a long chain shows.

    Args:
        placed: frame -> (3, 3) start, working px to the anchor's.
    Returns:
        Adjustment: the same frames.
    Source: Triggs et al. 2000, sections 4 and 6 (robust, sparse normal equations; inner
        covariance by the a-posteriori variance factor).
    """
    frames = sorted(placed)
    problem = _problem(links, {f: i for i, f in enumerate(frames)}, mask)
    generators = motion_generators(model)
    state = _state({f: placed[f] for f in frames}, problem)
    state = _descend(state, problem, generators, frames.index(anchor))
    back = problem.from_unit @ state @ problem.to_unit
    transforms = {f: matrix / matrix[2, 2] for f, matrix in zip(frames, back, strict=True)}
    return Adjustment(transforms, generators, anchor, problem)


def link_residuals(link: Link, placed: dict[int, ArrayF64]) -> ArrayF64:
    """(P,) float64 working px: distance of a's points, carried over the mosaic, to b's."""
    matrix = np.linalg.solve(placed[link.b], placed[link.a])
    return np.asarray(np.hypot(*(transform_points(matrix, link.xy_a) - link.xy_b).T))


def _state(placed: dict[int, ArrayF64], problem: _Problem) -> ArrayF64:
    """(n, 3, 3): the transforms in unit coordinates, in the order given."""
    state = np.stack([problem.to_unit @ m @ problem.from_unit for m in placed.values()])
    return np.asarray(state / state[:, 2:, 2:], np.float64)


def _descend(state: ArrayF64, problem: _Problem, generators: ArrayF64, fixed: int) -> ArrayF64:
    cost, damping = _cost(state, problem), DAMPING
    for _ in range(MAX_ITERATIONS):
        normal, right = _normal(state, problem, generators)
        step = _solved(normal, right, fixed=fixed, k=len(generators), damping=damping)
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
    return state


@dataclass(frozen=True, slots=True)
class _Problem:
    """All links' points in unit coordinates (centred on the view, radius 1), end to end."""

    a: ArrayI64
    b: ArrayI64
    starts: ArrayI64
    link: ArrayI64
    x: ArrayF64
    y: ArrayF64
    root: ArrayF64
    to_unit: ArrayF64
    from_unit: ArrayF64
    unit_px: float

    def parts(self) -> Iterator[_Problem]:
        """The same, some links at a time: a point takes a kilobyte of derivatives."""
        ends = np.r_[self.starts[1:], len(self.x)]
        for first in range(0, len(self.starts), _LINKS_AT_ONCE):
            links = slice(first, first + _LINKS_AT_ONCE)
            points = slice(self.starts[first], ends[links][-1])
            yield replace(
                self,
                a=self.a[links],
                b=self.b[links],
                starts=self.starts[links] - self.starts[first],
                link=self.link[points] - first,
                x=self.x[points],
                y=self.y[points],
                root=self.root[points],
            )


def _problem(links: Sequence[Link], row: dict[int, int], mask: ArrayBool) -> _Problem:
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
        root=np.concatenate([_floored(link.root_info) for link in used]) * radius,
        to_unit=np.linalg.inv(from_unit),
        from_unit=from_unit,
        unit_px=radius,
    )


def _floored(root: ArrayF64) -> ArrayF64:
    """(P, 2, 2) roots of the information that is left once ``FLOOR_PX`` of noise is added."""
    values, vectors = np.linalg.eigh(root @ root.transpose(0, 2, 1))
    values = np.maximum(values, 0)
    kept = np.sqrt(values / (1 + values * FLOOR_PX**2))
    return np.asarray(vectors * kept[:, None, :], np.float64)


def _project(state: ArrayF64, problem: _Problem) -> tuple[ArrayF64, ArrayF64, ArrayF64]:
    """Per point: b^-1 a (3, 3), the projected homogeneous point, the whitened residual (2,)."""
    between = np.linalg.solve(state[problem.b], state[problem.a])
    relative: ArrayF64 = between[problem.link].astype(np.float64)
    point = np.einsum("pij,pj->pi", relative, problem.x)
    residual = point[:, :2] / point[:, 2:] - problem.y
    return relative, point, np.einsum("pji,pj->pi", problem.root, residual)


def _prior_rows(state: ArrayF64) -> ArrayF64:
    """(n, 4): how far each frame is from a similarity, in standard deviations."""
    return np.stack(
        [
            (state[:, 0, 0] - state[:, 1, 1]) / SHAPE_SIGMA,
            (state[:, 0, 1] + state[:, 1, 0]) / SHAPE_SIGMA,
            state[:, 2, 0] / PERSPECTIVE_SIGMA,
            state[:, 2, 1] / PERSPECTIVE_SIGMA,
        ],
        axis=1,
    )


def _cost(state: ArrayF64, problem: _Problem) -> float:
    robust = 0.0
    for part in problem.parts():
        _, point, residual = _project(state, part)
        if (point[:, 2] <= 0).any():
            return float("inf")
        robust += float(np.log1p((residual**2).sum(axis=1) / CAUCHY**2).sum())
    return CAUCHY**2 * robust + float((_prior_rows(state) ** 2).sum())


def _normal(
    state: ArrayF64, problem: _Problem, generators: ArrayF64
) -> tuple[sparse.csc_matrix, ArrayF64]:
    """J^T W J and J^T W r over all frames' increments."""
    n, k = len(state), len(generators)
    parts = [_link_equations(state, part, generators) for part in problem.parts()]
    normal, right = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    index = np.concatenate(
        [problem.a[:, None] * k + np.arange(k), problem.b[:, None] * k + np.arange(k)], axis=1
    ).astype(np.int32)
    rows = np.repeat(index, 2 * k, axis=1).ravel()
    columns = np.tile(index, (1, 2 * k)).ravel()
    matrix = sparse.csc_matrix((normal.ravel(), (rows, columns)), shape=(n * k, n * k))
    vector = np.bincount(index.ravel(), right.ravel(), n * k)
    prior, pull = _prior_equations(state, generators)
    return (matrix + prior).tocsc(), vector + pull


def _link_equations(
    state: ArrayF64, problem: _Problem, generators: ArrayF64
) -> tuple[ArrayF64, ArrayF64]:
    """(L, 2K, 2K) and (L, 2K): of each link, over the increments of its frames a and b."""
    relative, point, residual = _project(state, problem)
    weight = 1.0 / (1.0 + (residual**2).sum(axis=1) / CAUCHY**2)
    projection = np.zeros((len(point), 2, 3))
    projection[:, 0, 0] = projection[:, 1, 1] = 1 / point[:, 2]
    projection[:, :, 2] = -point[:, :2] / point[:, 2:] ** 2
    projection = np.einsum("pji,pjk->pik", problem.root, projection)
    moved_a = np.einsum("pij,kjl,pl->pik", relative, generators, problem.x, optimize=True)
    moved_b = np.einsum("kij,pj->pik", generators, point, optimize=True)
    both = np.concatenate([projection @ moved_a, -projection @ moved_b], axis=2)
    weighted = both * weight[:, None, None]
    normal = np.add.reduceat(weighted.transpose(0, 2, 1) @ both, problem.starts)
    right = np.add.reduceat(np.einsum("prk,pr->pk", weighted, residual), problem.starts)
    return normal, right


def _prior_equations(state: ArrayF64, generators: ArrayF64) -> tuple[sparse.csc_matrix, ArrayF64]:
    n, k = len(state), len(generators)
    change = np.einsum("nij,kjl->nkil", state, generators)
    # the increment also rescales the matrix to [2, 2] = 1
    change = change - state[:, None] * change[:, :, 2:, 2:]
    rows = np.stack([_prior_rows(change[:, i]) for i in range(k)], axis=2)
    blocks = np.einsum("nrk,nrl->nkl", rows, rows)
    pull = np.einsum("nrk,nr->nk", rows, _prior_rows(state)).ravel()
    return sparse.block_diag(list(blocks), format="csc") if n else sparse.csc_matrix((0, 0)), pull


def _free(n: int, k: int, fixed: int) -> ArrayI64:
    """Increments that may change: of the anchor those that leave its middle as it is."""
    start = fixed * k
    return np.r_[0:start, start + min(k, SIMILAR) : n * k].astype(np.int64)


def _solved(
    normal: sparse.csc_matrix, right: ArrayF64, *, fixed: int, k: int, damping: float
) -> ArrayF64:
    """(n, K) increments: one damped Gauss-Newton step."""
    n = len(right) // k
    free = _free(n, k, fixed)
    inner = normal[free][:, free]
    inner = inner + sparse.diags(damping * (inner.diagonal() + 1e-6))
    step = np.zeros(n * k)
    if len(free):
        step[free] = splu(inner.tocsc()).solve(-right[free])
    return step.reshape(n, k)


def _covariances(state: ArrayF64, problem: _Problem, generators: ArrayF64, fixed: int) -> ArrayF64:
    """(n, K, K): diagonal blocks of the inverse normal matrix times the variance factor."""
    n, k = len(state), len(generators)
    normal, _ = _normal(state, problem, generators)
    squared = np.concatenate(
        [(_project(state, part)[2] ** 2).sum(axis=1) for part in problem.parts()]
    )
    # of a 2D normal, half of the squared lengths lie under 2 ln 2
    factor = max(float(np.median(squared)) / (2 * np.log(2)), 1e-4)
    blocks = np.zeros((n, k, k))
    free = _free(n, k, fixed)
    if not len(free):
        return blocks
    inner = normal[free][:, free]
    solver = splu((inner + sparse.diags(1e-9 * inner.diagonal() + 1e-12)).tocsc())
    first = np.searchsorted(free, np.arange(n + 1) * k)
    for i in range(n):
        own = slice(first[i], first[i + 1])
        unit = np.zeros((len(free), k))[:, : own.stop - own.start]
        unit[own] = np.eye(unit.shape[1])
        block = solver.solve(unit)[own] if unit.shape[1] else unit[own]
        kept = free[own] - i * k
        blocks[i][np.ix_(kept, kept)] = 0.5 * (block + block.T) * factor
    return blocks

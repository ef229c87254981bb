"""The joint optimisation's problem: all links' points, their residuals and normal equations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ml.mosaic.registration.links import Link
from ml.types import ArrayBool, ArrayF64, ArrayI64

CAUCHY = 2.5
"""Standard deviations beyond which a point's pull begins to fade."""

FLOOR_PX = 0.3
"""Error of the planar model itself, px: no point is weighted as more accurate than this."""

SHAPE_SIGMA, PERSPECTIVE_SIGMA = 0.3, 0.06
"""Weak pull of each frame, the anchor too, towards a similarity (view radius 1): it has no effect
where links constrain a frame, keeps shear and perspective from running away over a long sweep, and
makes the mosaic's plane the one that all frames together see the least tilted."""

MAX_BLOCK_LINKS = 256
"""Bounds the memory for derivatives: a kilobyte a point, some 60 points a link."""


@dataclass(frozen=True, slots=True)
class AdjustmentProblem:
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

    def parts(self) -> Iterator[AdjustmentProblem]:
        """Split the problem into blocks of at most ``MAX_BLOCK_LINKS`` links."""
        ends = np.r_[self.starts[1:], len(self.x)]
        for first in range(0, len(self.starts), MAX_BLOCK_LINKS):
            links = slice(first, first + MAX_BLOCK_LINKS)
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


def make_problem(links: Sequence[Link], row: dict[int, int], mask: ArrayBool) -> AdjustmentProblem:
    """Collect the links between the frames of ``row`` (frame -> row of the state)."""
    rows, columns = np.nonzero(mask)
    radius = 0.5 * max(float(np.ptp(rows)), float(np.ptp(columns)), 2.0)
    cx, cy = float(columns.mean()), float(rows.mean())
    from_unit = np.array([[radius, 0, cx], [0, radius, cy], [0, 0, 1.0]])
    used = [link for link in links if link.a in row and link.b in row]
    counts = np.array([len(link.xy_a) for link in used])
    ones = np.ones((int(counts.sum()), 1))
    centre = np.array([cx, cy])
    x = np.hstack([(np.concatenate([link.xy_a for link in used]) - centre) / radius, ones])
    return AdjustmentProblem(
        a=np.array([row[link.a] for link in used]),
        b=np.array([row[link.b] for link in used]),
        starts=np.r_[0, np.cumsum(counts)[:-1]].astype(np.int64),
        link=np.repeat(np.arange(len(used)), counts),
        x=x,
        y=(np.concatenate([link.xy_b for link in used]) - centre) / radius,
        root=np.concatenate([_add_noise_floor(link.root_info) for link in used]) * radius,
        to_unit=np.linalg.inv(from_unit),
        from_unit=from_unit,
        unit_px=radius,
    )


def _add_noise_floor(root: ArrayF64) -> ArrayF64:
    """(P, 2, 2) roots of the information that is left once ``FLOOR_PX`` of noise is added."""
    values, vectors = np.linalg.eigh(root @ root.transpose(0, 2, 1))
    values = np.maximum(values, 0)
    roots = np.sqrt(values / (1 + values * FLOOR_PX**2))
    return np.asarray(vectors * roots[:, None, :], np.float64)


def project(state: ArrayF64, problem: AdjustmentProblem) -> tuple[ArrayF64, ArrayF64, ArrayF64]:
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


def robust_cost(state: ArrayF64, problem: AdjustmentProblem) -> float:
    """Objective: Cauchy costs of all points plus priors; infinite where a point is behind a
    plane."""
    robust = 0.0
    for part in problem.parts():
        _, point, residual = project(state, part)
        if (point[:, 2] <= 0).any():
            return float("inf")
        robust += float(np.log1p((residual**2).sum(axis=1) / CAUCHY**2).sum())
    return CAUCHY**2 * robust + float((_prior_rows(state) ** 2).sum())


def normal_equations(
    state: ArrayF64, problem: AdjustmentProblem, generators: ArrayF64
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
    state: ArrayF64, problem: AdjustmentProblem, generators: ArrayF64
) -> tuple[ArrayF64, ArrayF64]:
    """(L, 2K, 2K) and (L, 2K): of each link, over the increments of its frames a and b."""
    relative, point, residual = project(state, problem)
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


def unit_state(placed: dict[int, ArrayF64], problem: AdjustmentProblem) -> ArrayF64:
    """(n, 3, 3): the transforms in unit coordinates, in the order given."""
    state = np.stack([problem.to_unit @ m @ problem.from_unit for m in placed.values()])
    return np.asarray(state / state[:, 2:, 2:], np.float64)

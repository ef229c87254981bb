"""Direct alignment: the motion between two frames from their grey values, without key points.

Inverse-compositional Lucas-Kanade on band-passed, locally normalised images without their fixed
pattern, coarse to fine, with robust weights. It finds motion where texture is too thin for key
points, and is several times more accurate than key points on well-textured pairs.

Both frames serve as template at the same time: with a single template its noise, stronger towards
the rim, makes every motion seem to widen, by a ten-thousandth a pair and by pixels over a long
sweep.

Source: Baker and Matthews 2004, section 3.2 (inverse compositional), section 4 (weights).
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ml.mosaic.direct.pyramid import FINE_SIGMA, DirectView, LevelView, unit_frame
from ml.mosaic.direct.residuals import spread_of, tukey_weight
from ml.types import ArrayBool, ArrayF32, ArrayF64

MAX_ITERATIONS = 20
"""Largest number of Gauss-Newton iterations on a level. Nearly all starts that need more are wrong;
stopping a right one early would bias it towards its start."""

STOP_PX = 0.015
"""A step under this, px of the level, is far below what grey values resolve."""

MIN_POINTS, MIN_OVERLAP = 200, 0.15
"""Px of a view, and share of them, that the other view must show."""

CELLS = 7
"""Cells a side that a view's px are summed in for the joint optimisation."""

STRAY_PX = 1.0
"""Largest deviation of a cell from the common motion, working px."""

PERSPECTIVE_SIGMA = 0.01
"""Prior of a pair's two perspective terms, view radius 1: one per cent across the view."""


@dataclass(frozen=True, slots=True)
class DirectAlignment:
    """Result of aligning a pair by grey values.

    Attributes:
        matrix: (3, 3) float64, working px of a to working px of b.
        ncc: correlation over the agreeing px of the overlap. Unrelated views reach 0.3, because
            the motion was chosen to raise it.
        overlap: share of a view's px that agree with the other's, the mean of both views.
        xy_a, xy_b: (P, 2) float32, centres of the textured cells of a, and their positions in b,
            working px.
        root_info: (P, 2, 2) float64, square roots R of each cell's information in the plane of b:
            ``R R^T`` is the inverse covariance of ``xy_b``, 1 / px2.
    """

    matrix: ArrayF64
    ncc: float
    overlap: float
    xy_a: ArrayF32
    xy_b: ArrayF32
    root_info: ArrayF64


def align_views(
    a: DirectView,
    b: DirectView,
    start: ArrayF64,
    *,
    generators: ArrayF64,
    work_shape: tuple[int, int],
    only_finest: bool = False,
) -> DirectAlignment | None:
    """Refine ``start``, (3, 3) working px of a to b; None if they hardly overlap or it fails.

    Args:
        generators: (K, 3, 3), the directions in which the motion may change, view radius 1.
        work_shape: (h, w) of the working image.
        only_finest: align on the finest level only, from a start that is near.
    """
    unit = unit_frame(work_shape)
    state = np.linalg.inv(unit) @ start @ unit
    last: _LevelPair | None = None
    levels = list(zip(a.levels, b.levels, strict=True))
    for level_a, level_b in levels[-1:] if only_finest else levels:
        last = _LevelPair(level_a, level_b, generators)
        solved = last.solve(state)
        if solved is None:
            return None
        state = solved
    return None if last is None else last.describe(state, unit)


class _LevelPair:
    """One level of two views; motions in unit coordinates, ``state`` maps a to b."""

    def __init__(self, a: LevelView, b: LevelView, generators: ArrayF64) -> None:
        self.generators = generators
        self.coefficients = np.linalg.pinv(generators.reshape(len(generators), 9))
        self.forward, self.backward = _Lookup(a, b, generators), _Lookup(b, a, generators)
        # the prior acts on the perspective terms only, which are the last two of eight
        self.prior = np.zeros(len(generators))
        if len(generators) == 8:
            self.prior[6:] = 1 / PERSPECTIVE_SIGMA**2

    def solve(self, state: ArrayF64) -> ArrayF64 | None:
        """Gauss-Newton; None if the views hardly overlap."""
        for _ in range(MAX_ITERATIONS):
            forward, backward = self._samples(state)
            if forward is None or backward is None:
                return None
            step = self._step(state, forward, backward)
            if step is None:
                return None
            change = np.eye(3) + np.einsum("k,kij->ij", step, self.generators)
            state = state @ np.linalg.inv(change)
            state = state / state[2, 2]
            if float(np.abs(step).max()) * self.forward.radius_px < STOP_PX:
                break
        return state if np.isfinite(state).all() else None

    def _samples(self, state: ArrayF64) -> tuple[_Sample | None, _Sample | None]:
        back = np.asarray(np.linalg.inv(state), np.float64)
        return self.forward.sample(state), self.backward.sample(back)

    def _step(self, state: ArrayF64, forward: _Sample, backward: _Sample) -> ArrayF64 | None:
        """(K,): increments that move a's points to fit b, combined from both directions."""
        normal, right = self.forward.equations(forward)
        back_normal, back_right = self.backward.equations(backward)
        # the points of b move opposite to those of a, mapped by the motion between them
        turned = state @ self.generators @ np.linalg.inv(state)
        turned = turned - turned[:, 2:, 2:] * np.eye(3)
        along = -(turned.reshape(-1, 9) @ self.coefficients).T
        normal = normal + along.T @ back_normal @ along
        right = right + along.T @ back_right
        normal[np.diag_indices(len(normal))] += 1e-4 * np.diag(normal) + 1e-7 * np.trace(normal)
        normal += np.diag(self.prior * (forward.spread**2 + backward.spread**2))
        try:
            return np.asarray(np.linalg.solve(normal, right), np.float64)
        except np.linalg.LinAlgError:
            return None

    def describe(self, state: ArrayF64, unit: ArrayF64) -> DirectAlignment | None:
        forward, backward = self._samples(state)
        if forward is None or backward is None:
            return None
        return make_alignment(
            self._cells(state, forward, backward),
            state,
            unit,
            Fit(
                spread=forward.spread,
                ncc=0.5 * (self.forward.ncc(forward) + self.backward.ncc(backward)),
                overlap=0.5 * (forward.overlap + backward.overlap),
                radius_px=self.forward.radius_px,
            ),
        )

    def _cells(self, state: ArrayF64, forward: _Sample, backward: _Sample) -> CellSums:
        """Points of a and b sorted into the cells of a's view, with their slopes in b."""
        back = np.linalg.inv(state)
        valid = back @ self.backward.level.points
        jacobian = state[:2, :2] - np.outer(state[:2, 2], state[2, :2])
        slope = np.linalg.inv(jacobian).T @ self.forward.level.gradient
        return CellSums.of(
            np.hstack([self.forward.level.points[:2], valid[:2] / valid[2]]),
            np.hstack([slope, self.backward.level.gradient]),
            weight=0.5 * np.concatenate([forward.weight, backward.weight]),
            residual=np.concatenate([-forward.residual, backward.residual]),
        )


@dataclass(frozen=True, slots=True)
class _Sample:
    """The other view at a side's points: (N,) difference, (N,) weight, the differences' spread."""

    residual: ArrayF32
    weight: ArrayF32
    spread: float

    @property
    def overlap(self) -> float:
        return float((self.weight > 0).mean())


class _Lookup:
    """One view's points, looked up in the other view."""

    def __init__(self, level: LevelView, other: LevelView, generators: ArrayF64) -> None:
        self.level, self.other = level, other
        self.radius_px = float(level.unit[0, 0])
        self.points_32 = level.points.astype(np.float32)
        x, y = level.points[0], level.points[1]
        columns = []
        for generator in generators:
            moved = generator @ level.points
            dx, dy = moved[0] - x * moved[2], moved[1] - y * moved[2]
            columns.append(level.gradient[0] * dx + level.gradient[1] * dy)
        # (N, K): change of the view's value by each parameter
        self.descent = np.asarray(np.stack(columns, axis=1) * self.radius_px, np.float32)

    def sample(self, state: ArrayF64) -> _Sample | None:
        """Compare, ``state`` mapping this view to the other; None if they hardly overlap."""
        if len(self.level.value) < MIN_POINTS:
            return None
        mapped = (self.other.unit @ state).astype(np.float32) @ self.points_32
        x, y = mapped[:1] / mapped[2], mapped[1:2] / mapped[2]
        warped = cv2.remap(self.other.image, x, y, cv2.INTER_LINEAR)[0]
        valid = cv2.remap(self.other.valid, x, y, cv2.INTER_NEAREST)[0] > 0
        if valid.sum() < max(MIN_POINTS, MIN_OVERLAP * len(valid)):
            return None
        residual = warped - self.level.value
        spread = spread_of(residual, valid)
        weight = np.where(valid, tukey_weight(residual, spread), np.float32(0))
        return _Sample(residual, weight, spread)

    def equations(self, sample: _Sample) -> tuple[ArrayF64, ArrayF64]:
        """(K, K) and (K,): the weighted normal equations of this side's own increments."""
        weighted = self.descent * sample.weight[:, None]
        normal = (weighted.T @ self.descent).astype(np.float64)
        return normal, (weighted.T @ sample.residual).astype(np.float64)

    def ncc(self, sample: _Sample) -> float:
        """Correlation over the px that agree."""
        return _ncc(self.level.value, sample.residual + self.level.value, sample.weight > 0)


@dataclass(frozen=True, slots=True)
class CellSums:
    """Sums over the px of C cells: structure and residual motion.

    Attributes:
        middle: (C, 2), unit coordinates of a, weighted by slope.
        tensor: (C, 2, 2), structure tensor
        pull: (C, 2), so that ``tensor^-1 pull`` is the
            displacement of the cell beyond the common motion, px of the level, in b.
    """

    middle: ArrayF64
    tensor: ArrayF64
    pull: ArrayF64

    @classmethod
    def of(
        cls, points: ArrayF64, slope: ArrayF64, *, weight: ArrayF64, residual: ArrayF64
    ) -> CellSums:
        """Sum pixels into the cells of a grid over ``a``.

        Args:
            points: (2, N) unit coordinates of pixels of a.
            slope: (2, N) image gradient at them, in the coordinates of b.
            weight, residual: (N,) robust weight, and grey-value difference a minus b.
        """
        column, row = np.clip((points + 1) / 2 * CELLS, 0, CELLS - 1).astype(np.int64)
        cells, cell = np.unique(row * CELLS + column, return_inverse=True)

        def total(values: ArrayF64) -> ArrayF64:
            return np.bincount(cell, weight * values, len(cells)).astype(np.float64)

        x, y = slope
        energy = x * x + y * y
        mass = np.maximum(total(energy), 1e-12)[:, None]
        xx, xy, yy = total(x * x), total(x * y), total(y * y)
        return cls(
            middle=np.stack([total(energy * points[0]), total(energy * points[1])], axis=1) / mass,
            tensor=np.stack([np.stack([xx, xy], axis=1), np.stack([xy, yy], axis=1)], axis=1),
            pull=np.stack([total(x * residual), total(y * residual)], axis=1),
        )


@dataclass(frozen=True, slots=True)
class Fit:
    """Agreement of two views on a level.

    Attributes:
        spread: of a's differences.
        ncc, overlap: see ``DirectAlignment``.
        radius_px: length of a unit in px of the level.
    """

    spread: float
    ncc: float
    overlap: float
    radius_px: float


def make_alignment(cells: CellSums, state: ArrayF64, unit: ArrayF64, fit: Fit) -> DirectAlignment:
    """Make the alignment of cells, in working px.

    Args:
        state: (3, 3), unit coordinates of a to those of b.
        unit: (3, 3), unit coordinates to
            working px.
    """
    in_b = state @ np.vstack([cells.middle.T, np.ones(len(cells.middle))])
    xy_a = cells.middle * unit[0, 0] + unit[:2, 2]
    xy_b = (in_b[:2] / in_b[2]).T * unit[0, 0] + unit[:2, 2]
    # correlated residuals: a px has less information than an independent sample
    scale = unit[0, 0] / fit.radius_px
    whiten = 1 / (fit.spread * scale * 2 * np.sqrt(np.pi) * FINE_SIGMA)
    info = cells.tensor * whiten**2
    shift = np.linalg.solve(
        info + np.eye(2) / STRAY_PX**2, cells.pull[:, :, None] * whiten**2 * scale
    )[:, :, 0]
    keep = np.trace(cells.tensor, axis1=1, axis2=2) > 1e-6
    matrix = unit @ state @ np.linalg.inv(unit)
    return DirectAlignment(
        matrix=np.asarray(matrix / matrix[2, 2], np.float64),
        ncc=fit.ncc,
        overlap=fit.overlap,
        xy_a=xy_a[keep].astype(np.float32),
        xy_b=(xy_b + shift)[keep].astype(np.float32),
        root_info=_roots(info[keep]),
    )


def _roots(info: ArrayF64) -> ArrayF64:
    """(P, 2, 2) R with ``R R^T`` the information."""
    values, vectors = np.linalg.eigh(info)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0))[:, None, :], np.float64)


def _ncc(a: ArrayF32, b: ArrayF32, both: ArrayBool) -> float:
    x, y = a[both] - a[both].mean(), b[both] - b[both].mean()
    return float((x * y).sum()) / max(float(np.sqrt((x * x).sum() * (y * y).sum())), 1e-9)

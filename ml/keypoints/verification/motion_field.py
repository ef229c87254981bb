"""Motion field between two views by local affine regression of matches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from ml.errors import NotEnoughMatchesError
from ml.types import ArrayF64

MIN_SUPPORT = 6
"""Smallest number of matches: twice those that determine an affine map."""

NEIGHBOURS = 16
"""Matches that a local map is fitted to."""

RIDGE = 0.05
"""Weight of the ridge towards the global affine map."""

ROUNDS = 3
"""Fits of a local map, re-weighted by the residuals of the previous one."""

MIN_REACH_PX, MIN_SCALE_PX = 1.0, 0.5
"""Lower bounds of the spatial bandwidth and of the scale of residuals."""

NO_WEIGHT, TINY_RIDGE = 1e-9, 1e-6
"""Lower bound of a sum of weights, and ridge for collinear points."""

_CHUNK = 4096
"""Points per chunk: about 8 MB of neighbours."""


@dataclass(frozen=True, slots=True)
class PredictedPoints:
    """Predicted positions in b of N points of a.

    Attributes:
        xy_b: (N, 2) float64, positions.
        jacobian: (N, 2, 2) float64, d xy_b / d xy_a.
        spread_px: (N,) float64, weighted RMS disagreement of the neighbours with the local map.
    """

    xy_b: ArrayF64
    jacobian: ArrayF64
    spread_px: ArrayF64


class MotionField:
    """Locally weighted affine regression of matches.

    Uses the nearest matches in a with Gaussian weights (the bandwidth is the median distance),
    re-weighted twice by the Cauchy function of the residuals, and a ridge towards the affine map of
    all matches.

    Args:
        xy_a, xy_b: (M, 2) pixels, M >= 6.
    Raises:
        NotEnoughMatchesError: M < 6.
    Source: Cleveland and Devlin 1988 (local regression); departs from it by the ridge.
    """

    def __init__(self, xy_a: npt.NDArray[np.floating], xy_b: npt.NDArray[np.floating]) -> None:
        if len(xy_a) < MIN_SUPPORT:
            raise NotEnoughMatchesError(needed=MIN_SUPPORT, actual=len(xy_a))
        self.xy_a = np.asarray(xy_a, np.float64)
        self.xy_b = np.asarray(xy_b, np.float64)
        self._tree = cKDTree(self.xy_a)
        self._global = _affine(self.xy_a, self.xy_b)

    def at(self, xy: npt.NDArray[np.floating], *, leave_out: bool = False) -> PredictedPoints:
        """Evaluate the field at points (N, 2) of a.

        Args:
            leave_out: The points are the matches of the field, in order, and each is predicted from
                the others.
        """
        points = np.asarray(xy, np.float64).reshape(-1, 2)
        parts = [
            self._chunk(points[start : start + _CHUNK], start if leave_out else None)
            for start in range(0, len(points), _CHUNK)
        ] or [PredictedPoints(np.zeros((0, 2)), np.zeros((0, 2, 2)), np.zeros(0))]
        return PredictedPoints(
            np.concatenate([p.xy_b for p in parts]),
            np.concatenate([p.jacobian for p in parts]),
            np.concatenate([p.spread_px for p in parts]),
        )

    def _chunk(self, points: ArrayF64, first_row: int | None) -> PredictedPoints:
        count = min(NEIGHBOURS + (first_row is not None), len(self.xy_a))
        distance, index = self._tree.query(points, k=count)
        weight = np.ones_like(distance)
        if first_row is not None:
            is_self = index == (first_row + np.arange(len(points)))[:, None]
            weight[is_self] = 0.0
        bandwidth = np.maximum(distance[:, count // 2], MIN_REACH_PX)
        weight *= np.exp(-0.5 * (distance / bandwidth[:, None]) ** 2)
        offset = self.xy_a[index] - points[:, None]
        linear, shift = self._global[:, :2], self._global[:, 2]
        residual = self.xy_b[index] - (self.xy_a[index] @ linear.T + shift)
        solved, spread = _fit(offset, residual, weight, bandwidth)
        xy_b = points @ linear.T + shift + solved[:, 0]
        return PredictedPoints(xy_b, linear + solved[:, 1:].transpose(0, 2, 1), spread)


def _fit(
    offset: ArrayF64, residual: ArrayF64, weight: ArrayF64, bandwidth: ArrayF64
) -> tuple[ArrayF64, ArrayF64]:
    """Fit the residual of the global map: shift and linear part (N, 3, 2), and spread (N,)."""
    design = np.concatenate([np.ones((*offset.shape[:2], 1)), offset], axis=2)
    robust = weight
    for _ in range(ROUNDS):
        total = np.maximum(robust.sum(axis=1), NO_WEIGHT)
        weighted = design * robust[:, :, None]
        normal = weighted.transpose(0, 2, 1) @ design
        ridge = RIDGE * total * bandwidth**2
        normal[:, 1, 1] += ridge
        normal[:, 2, 2] += ridge
        normal[:, 0, 0] += NO_WEIGHT
        solved = np.linalg.solve(normal, weighted.transpose(0, 2, 1) @ residual)
        squared = ((residual - design @ solved) ** 2).sum(axis=2)
        spread = np.sqrt((robust * squared).sum(axis=1) / total)
        scale = np.maximum(np.median(np.sqrt(squared), axis=1), MIN_SCALE_PX)
        robust = weight / (1.0 + squared / (2.0 * scale[:, None]) ** 2)
    return solved, spread


def _affine(xy_a: ArrayF64, xy_b: ArrayF64) -> ArrayF64:
    """Least-squares affine map (2, 3); nearly a shift if the points are nearly collinear."""
    middle = xy_a.mean(axis=0)
    offset, target = xy_a - middle, xy_b - xy_b.mean(axis=0)
    ridge = TINY_RIDGE * max(float((offset**2).sum()), 1.0)
    normal = offset.T @ offset + ridge * np.eye(2)
    linear = np.linalg.solve(normal, offset.T @ target + ridge * np.eye(2)).T
    return np.concatenate([linear, (xy_b.mean(axis=0) - linear @ middle)[:, None]], axis=1)

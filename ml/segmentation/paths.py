"""Closed paths of minimum cost around a centre, one radius for each direction."""

from __future__ import annotations

import numpy as np

from ml.types import ArrayF32, ArrayI64

_LAPS = 2  # the path of the second lap ends within one step of its start


def closed_paths(cost: ArrayF32, *, max_step: int, step_cost: float) -> ArrayI64:
    """Find the closed path of minimum cost on each of several polar grids.

    Args:
        cost: (L, A, R) float32, cost of radius r in direction a on grid l.
        max_step: Largest difference of radius index between neighbouring directions.
        step_cost: Cost of each unit of this difference.
    Returns:
        (L, A) int64, radius index in each direction.
    Source: dynamic programming on a polar grid (Gerig et al.); departs from an exact search of
        the best closed path by searching two laps and taking the middle one.
    """
    laps = np.concatenate([cost] * _LAPS + [cost[:, :1]], axis=1)
    levels, steps, radii = laps.shape
    penalty = step_cost * np.abs(np.arange(-max_step, max_step + 1, dtype=np.float32))
    previous = np.zeros((steps, levels, radii), np.int64)
    cumulative: ArrayF32 = laps[:, 0].copy()
    pad = ((0, 0), (max_step, max_step))
    positions = np.arange(radii)
    for step in range(1, steps):
        padded = np.pad(cumulative, pad, constant_values=np.inf)
        reachable = np.lib.stride_tricks.sliding_window_view(padded, len(penalty), axis=1) + penalty
        best = reachable.argmin(axis=2)
        previous[step] = positions + best - max_step
        lowest = np.take_along_axis(reachable, best[..., None], axis=2)[..., 0]
        cumulative = (lowest + laps[:, step]).astype(np.float32)
    path = np.empty((steps, levels), np.int64)
    path[-1] = cumulative.argmin(axis=1)
    rows = np.arange(levels)
    for step in range(steps - 1, 0, -1):
        path[step - 1] = previous[step, rows, path[step]]
    lap = cost.shape[1]
    middle_lap = path[lap // 2 : lap // 2 + lap]
    return np.roll(middle_lap, lap // 2, axis=0).T

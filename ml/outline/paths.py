"""Cheapest closed paths around a centre: one distance for each direction."""

from __future__ import annotations

import numpy as np

from ml.types import ArrayF32, ArrayI64

_LAPS = 2  # the middle of two laps ends where it begins, within a step


def closed_paths(cost: ArrayF32, *, most_step: int, step_cost: float) -> ArrayI64:
    """(L, A) int64: for each of L costs, the ring of A places that costs least.

    Args:
        cost: (L, A, R) float32, of place r in direction a.
        most_step: by how many places neighbouring directions may differ.
        step_cost: of each place that they differ by.
    Source: dynamic programming on a polar grid, Gerig and others; departs from an exact search of
        the best closed path by going round twice and taking the middle lap.
    """
    laps = np.concatenate([cost] * _LAPS + [cost[:, :1]], axis=1)
    levels, steps, places = laps.shape
    toll = step_cost * np.abs(np.arange(-most_step, most_step + 1, dtype=np.float32))
    came = np.zeros((steps, levels, places), np.int64)
    total: ArrayF32 = laps[:, 0].copy()
    pad = ((0, 0), (most_step, most_step))
    here = np.arange(places)
    for step in range(1, steps):
        around = np.pad(total, pad, constant_values=np.inf)
        reached = np.lib.stride_tricks.sliding_window_view(around, len(toll), axis=1) + toll
        best = reached.argmin(axis=2)
        came[step] = here + best - most_step
        least = np.take_along_axis(reached, best[..., None], axis=2)[..., 0]
        total = (least + laps[:, step]).astype(np.float32)
    found = np.empty((steps, levels), np.int64)
    found[-1] = total.argmin(axis=1)
    rows = np.arange(levels)
    for step in range(steps - 1, 0, -1):
        found[step - 1] = came[step, rows, found[step]]
    around_once = cost.shape[1]
    middle = found[around_once // 2 : around_once // 2 + around_once]
    return np.roll(middle, around_once // 2, axis=0).T

"""A second pass: with the motion known, look again where each unmatched key point must be."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from ml.geometry import depth_of, homography_jacobian, transform_points
from ml.keypoints.verification.two_view_model import TwoViewModel
from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64

CANDIDATES = 8
"""Key points of b compared with each of a at most; the nearest to the predicted place."""


def predict_points(model: TwoViewModel, xy_a: ArrayF32) -> tuple[ArrayF64, ArrayF64, ArrayF64]:
    """Where points of a lie in b: (N, 2) places, (N, 2, 2) local maps, (N,) uncertainty in px."""
    sample = model.field.at(xy_a)
    if model.kind == "plane" and model.matrix is not None:
        # at and beyond the plane's horizon only the field tells
        seen = depth_of(model.matrix, xy_a) > 0.05
        sample.xy_b[seen] = transform_points(model.matrix, xy_a[seen])
        sample.jacobian[seen] = homography_jacobian(model.matrix, xy_a[seen])
        return sample.xy_b, sample.jacobian, np.where(seen, 0.0, sample.spread_px)
    return sample.xy_b, sample.jacobian, sample.spread_px


def guided_matches(
    rows_a: ArrayF32,
    rows_b: ArrayF32,
    xy_b: ArrayF32,
    places: ArrayF64,
    radius_px: ArrayF64,
    *,
    ratio: float,
    max_distance: float,
) -> tuple[ArrayI64, ArrayF32]:
    """Match key points of a to those of b near their predicted places.

    Args:
        rows_a: (N, D). rows_b: (M, D). xy_b: (M, 2). places: (N, 2) predicted in b.
        radius_px: (N,) how far to look.
        ratio: the best must be nearer than ratio times the second best *within the radius*.
        max_distance: largest descriptor distance.
    Returns:
        pairs: (K, 2) int64, each row of a and of b at most once. distance: (K,) float32.
    """
    nothing = np.zeros((0, 2), np.int64), np.zeros(0, np.float32)
    if not len(rows_a) or not len(rows_b):
        return nothing
    count = min(CANDIDATES, len(xy_b))
    apart, index = cKDTree(xy_b).query(places, k=count, distance_upper_bound=radius_px.max())
    apart, index = apart.reshape(len(places), count), index.reshape(len(places), count)
    valid: ArrayBool = np.isfinite(apart) & (apart <= radius_px[:, None])
    index = np.where(valid, index, 0)
    distance = _distances(rows_a, rows_b, index, valid)
    rows = np.arange(len(places))
    best = distance.argmin(axis=1)
    first = distance[rows, best]
    distance[rows, best] = np.inf
    second = distance.min(axis=1)
    keep = (first < max_distance) & (first < ratio * second)
    pairs = np.stack([rows, index[rows, best]], axis=1)[keep].astype(np.int64)
    return _one_each(pairs, first[keep].astype(np.float32))


def _distances(rows_a: ArrayF32, rows_b: ArrayF32, index: ArrayI64, valid: ArrayBool) -> ArrayF64:
    """(N, K) Euclidean distances, inf where there is no candidate or no descriptor."""
    distance = np.full(index.shape, np.inf)
    told_a, told_b = np.asarray(rows_a.any(axis=1)), np.asarray(rows_b.any(axis=1))
    i, k = np.nonzero(valid & told_a[:, None] & told_b[index])
    for start in range(0, len(i), 8192):
        s = slice(start, start + 8192)
        distance[i[s], k[s]] = np.linalg.norm(rows_a[i[s]] - rows_b[index[i[s], k[s]]], axis=1)
    return distance


def _one_each(pairs: ArrayI64, distance: ArrayF32) -> tuple[ArrayI64, ArrayF32]:
    """The nearest row of a for each row of b."""
    order = np.argsort(distance, kind="stable")
    _, first = np.unique(pairs[order, 1], return_index=True)
    kept = np.sort(order[first])
    return pairs[kept], distance[kept]

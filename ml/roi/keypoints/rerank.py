"""Re-ranking of the nearest regions by geometrically consistent key point matches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ml.keypoints.features import ImageFeatures, extract
from ml.keypoints.pipeline import match_features
from ml.roi.keypoints.encoder import RegionView
from ml.types import ArrayF32, ArrayI64

FIRST = 50
"""Number of nearest regions that are matched, which takes some tenths of a second each."""
_KEYPOINTS = 400
"""Largest number of key points of a region, which is scaled to about 128 px."""


def region_features(view: RegionView) -> ImageFeatures:
    """Key points inside a region, for ``rerank``; the surroundings only support descriptors."""
    return extract(view.image, max_keypoints=_KEYPOINTS, mask=view.inside)


def rerank(
    query: ImageFeatures, candidates: Sequence[ImageFeatures], distance: ArrayF32
) -> tuple[ArrayI64, ArrayI64]:
    """Order candidates by the number of matches with the query, then by distance.

    Args:
        query: Key points of the query region.
        candidates: Key points of N candidates.
        distance: (N,) float32, distances of the vectors of the candidates.
    Returns:
        order: (N,) int64, best first.
        matches: (N,) int64, number of matches of each candidate; 0 beyond the ``FIRST`` nearest.
    """
    nearest = np.argsort(distance, kind="stable")[:FIRST]
    matches = np.zeros(len(candidates), np.int64)
    for index in nearest:
        matches[index] = len(match_features(query, candidates[index]).score)
    return np.lexsort((distance, -matches)).astype(np.int64), matches

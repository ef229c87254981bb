"""Look again at the nearest regions: those whose key points agree on one geometry come first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ml.keypoints import ImageFeatures, extract, match_features
from ml.roi.keypoints.encoder import RegionView
from ml.types import ArrayF32, ArrayI64

FIRST = 50
"""Regions looked at again: a match costs some tenths of a second."""
_KEYPOINTS = 400
"""Of a region: it is brought to some 128 px, and holds no more."""


def region_features(view: RegionView) -> ImageFeatures:
    """Key points inside a region, for ``reranked``; its surroundings only support them."""
    return extract(view.image, max_keypoints=_KEYPOINTS, mask=view.inside)


def reranked(
    query: ImageFeatures, candidates: Sequence[ImageFeatures], distance: ArrayF32
) -> tuple[ArrayI64, ArrayI64]:
    """A new order of the nearest regions.

    Args:
        query: of the region that is searched for.
        candidates: of the regions found. distance: (N,) float32 theirs, by vectors.
    Returns:
        order: (N,) int64, best first: more agreeing key points first, among equals the nearer one.
        matches: (N,) int64 of each candidate, in the order given; 0 beyond the ``FIRST`` nearest.
    """
    nearest = np.argsort(distance, kind="stable")[:FIRST]
    matches = np.zeros(len(candidates), np.int64)
    for index in nearest:
        matches[index] = len(match_features(query, candidates[index]).score)
    return np.lexsort((distance, -matches)).astype(np.int64), matches

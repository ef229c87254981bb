"""Dense patch matching by ``vit`` on the pairs that the descriptors are scored on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ml.evaluation.epipolar.scores import EpipolarScore, FrameCache, scored
from ml.keypoints.descriptors import vit
from ml.keypoints.descriptors.vit_dense import DenseConfig, match_dense
from ml.types import ArrayBool, Matches, Progress

RULES = {
    "vit (dense)": DenseConfig(),
    "vit (dense, the paper's rule)": DenseConfig.paper_protocol(),
}
"""Rules of a dense match, by the name of their row."""


def dense_scores(
    cache: FrameCache, pairs: Sequence[tuple[int, int]], progress: Progress
) -> dict[str, list[EpipolarScore]]:
    """Score every pair by each of ``RULES``, inside the sequence's mask.

    Raises:
        MlError: The weights do not load.
    """
    descriptor, table = vit.load("vit"), {}
    for name, config in RULES.items():
        rows = []
        for number, (a, b) in enumerate(pairs):
            progress(number, len(pairs), f"{name}, gap {b - a}")
            matches = match_dense(
                cache.frame(a), cache.frame(b), descriptor=descriptor, config=config
            )
            matches = inside_mask(matches, cache.sequence.mask)
            rows.append(scored(cache.sequence, a, b, matches, matches))
        table[name] = rows
    return table


def inside_mask(matches: Matches, mask: ArrayBool | None) -> Matches:
    """Matches with both points in an (H, W) mask; all of them without a mask."""
    if mask is None:
        return matches
    keep = np.ones(len(matches), np.bool_)
    for xy in (matches.xy_a, matches.xy_b):
        column, row = np.rint(xy).astype(np.int64).T
        keep &= mask[row.clip(0, mask.shape[0] - 1), column.clip(0, mask.shape[1] - 1)]
    return Matches(matches.xy_a[keep], matches.xy_b[keep], matches.score[keep])

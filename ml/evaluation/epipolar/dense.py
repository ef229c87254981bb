"""The transformer's own protocol, dense patches, on the pairs that descriptors are scored on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ml.evaluation.common.images import EvaluationImage
from ml.evaluation.epipolar.scores import EpipolarScore, FrameCache, scored
from ml.evaluation.matching.protocols import CountScore, epipolar_inliers, planar_inliers
from ml.keypoints import load_descriptor
from ml.types import ArrayBool, ImageU8, Matches, Progress

DenseMatcher = Callable[[ImageU8, ImageU8], Matches]


def dense_matchers() -> dict[str, DenseMatcher]:
    """``vit`` by dense matching under our rule, and under the paper's with its finer maps.

    Raises:
        MlError: it does not load.
    """
    from ml.keypoints.descriptors.vit import load
    from ml.keypoints.descriptors.vit_dense import DenseConfig, match_dense

    load_descriptor("vit")  # refused here, by its name, where it cannot be used
    descriptor = load("vit")

    def matcher(config: DenseConfig) -> DenseMatcher:
        return lambda a, b: match_dense(a, b, descriptor=descriptor, config=config)

    return {
        "vit (dense)": matcher(DenseConfig()),
        "vit (dense, the paper's rule)": matcher(DenseConfig.of_the_paper(resample=2)),
    }


def dense_scores(
    cache: FrameCache, pairs: Sequence[tuple[int, int]], progress: Progress
) -> dict[str, list[EpipolarScore]]:
    """The scores of every pair; what lies outside the sequence's mask is left out."""
    table: dict[str, list[EpipolarScore]] = {}
    mask = cache.sequence.mask
    for name, match in dense_matchers().items():
        rows = []
        for done, (a, b) in enumerate(pairs):
            progress(done, len(pairs), f"{name}, gap {b - a}")
            found = inside_mask(match(cache.frame(a), cache.frame(b)), mask, mask)
            rows.append(scored(cache.sequence, a, b, found, found))
        table[name] = rows
    return table


def dense_counts(
    pairs: Sequence[tuple[EvaluationImage, EvaluationImage]], progress: Progress
) -> dict[str, list[CountScore]]:
    """Matches and inliers of pairs of images, within their masks: no geometry comes before."""
    table: dict[str, list[CountScore]] = {}
    for name, match in dense_matchers().items():
        rows = []
        for done, (a, b) in enumerate(pairs):
            progress(done, len(pairs), f"{name}, elsewhere")
            found = inside_mask(match(a.rgb, b.rgb), a.mask, b.mask)
            counts = (len(found), epipolar_inliers(found), planar_inliers(found))
            rows.append(CountScore(*counts, *counts))
        table[name] = rows
    return table


def inside_mask(found: Matches, mask_a: ArrayBool | None, mask_b: ArrayBool | None) -> Matches:
    """The matches that lie in both masks (H, W); None is everywhere."""
    keep = np.ones(len(found), np.bool_)
    for xy, mask in ((found.xy_a, mask_a), (found.xy_b, mask_b)):
        if mask is not None:
            column, row = np.rint(xy).astype(np.int64).T
            keep &= mask[row.clip(0, mask.shape[0] - 1), column.clip(0, mask.shape[1] - 1)]
    return Matches(found.xy_a[keep], found.xy_b[keep], found.score[keep])

"""The transformer's own protocol, dense patches, on the pairs that descriptors are scored on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ml.errors import BadInputError
from ml.evaluation.common.descriptors import told_name
from ml.evaluation.common.images import EvaluationImage
from ml.evaluation.epipolar.scores import EpipolarScore, FrameCache, scored
from ml.evaluation.matching.protocols import CountScore, epipolar_inliers, planar_inliers
from ml.keypoints import load_descriptor
from ml.types import ArrayBool, ImageU8, Matches, Progress

DenseMatcher = Callable[[ImageU8, ImageU8], Matches]


def dense_matchers(names: Sequence[str] = ("vit",)) -> dict[str, DenseMatcher]:
    """Dense matching by each name, under our rule and under the paper's.

    Args:
        names: ``vit``, or ``vit:FILE`` of other weights, which the rows call by the file's folder.
    Raises:
        BadInputError: no name of a transformer. MlError: it does not load.
    """
    from ml.keypoints.descriptors.vit import load
    from ml.keypoints.descriptors.vit_dense import DenseConfig, match_dense

    def matcher(name: str, config: DenseConfig) -> DenseMatcher:
        descriptor = load(name)
        return lambda a, b: match_dense(a, b, descriptor=descriptor, config=config)

    found: dict[str, DenseMatcher] = {}
    for name in names:
        if name.partition(":")[0] != "vit":
            raise BadInputError(f"dense: expected vit or vit:FILE, got {name}")
        load_descriptor(name)  # refused here, by its name, where it cannot be used
        told = told_name(name)
        found[f"{told} (dense)"] = matcher(name, DenseConfig())
        found[f"{told} (dense, the paper's rule)"] = matcher(name, DenseConfig.of_the_paper())
    return found


def dense_scores(
    cache: FrameCache,
    pairs: Sequence[tuple[int, int]],
    progress: Progress,
    names: Sequence[str] = ("vit",),
) -> dict[str, list[EpipolarScore]]:
    """The scores of every pair; what lies outside the sequence's mask is left out."""
    table: dict[str, list[EpipolarScore]] = {}
    mask = cache.sequence.mask
    for name, match in dense_matchers(names).items():
        rows = []
        for done, (a, b) in enumerate(pairs):
            progress(done, len(pairs), f"{name}, gap {b - a}")
            found = inside_mask(match(cache.frame(a), cache.frame(b)), mask, mask)
            rows.append(scored(cache.sequence, a, b, found, found))
        table[name] = rows
    return table


def dense_counts(
    pairs: Sequence[tuple[EvaluationImage, EvaluationImage]],
    progress: Progress,
    names: Sequence[str] = ("vit",),
) -> dict[str, list[CountScore]]:
    """Matches and inliers of pairs of images, within their masks: no geometry comes before."""
    table: dict[str, list[CountScore]] = {}
    for name, match in dense_matchers(names).items():
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

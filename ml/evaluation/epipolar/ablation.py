"""What each part adds: of the adapted transformer (table III), and of the matching pipeline."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any, NotRequired, TypedDict

import numpy as np

from ml.errors import MlError
from ml.evaluation.common.features import FeatureCache
from ml.evaluation.epipolar.dense import inside_mask
from ml.evaluation.epipolar.scores import FrameCache, epipolar_rates, pose_error_deg
from ml.evaluation.matching.metrics import pose_auc
from ml.keypoints import Descriptor, load_descriptor
from ml.keypoints.pipeline import MatchConfig
from ml.types import Matches, Progress

Matcher = Callable[[int, int], Matches]

BARE = MatchConfig(guided_radius_px=0.0, is_refined=False, completion_rounds=0)
STAGES: dict[str, MatchConfig] = {
    "+ agreement with the neighbours": BARE,
    "+ guided second pass": MatchConfig(is_refined=False, completion_rounds=0),
    "+ sub-pixel positions": MatchConfig(completion_rounds=0),
    "+ completion by alignment": MatchConfig(),
}


class RowScores(TypedDict):
    """One row: how many pairs, and the means over them; see ``ablation``."""

    pairs: int
    matches: float
    epipolar_px: float
    epipolar_px_sd: float
    under_1px: float
    under_3px: float
    auc_10deg: float
    partner_found: float


class AblationTables(TypedDict):
    """Rows by name; ``vit`` is missing where that descriptor does not load."""

    stages: dict[str, RowScores]
    vit: NotRequired[dict[str, RowScores]]


def ablation(
    cache: FrameCache, pairs: list[tuple[int, int]], descriptor: str, progress: Progress
) -> AblationTables:
    """Score the rows of table III of dinov2-adaptation, and the stages of ``match_images``.

    Args:
        descriptor: the one whose matches the stages are scored on.
    Returns:
        ``vit`` (missing where that descriptor does not load) and ``stages``: by row, ``matches``,
        ``epipolar_px`` with ``epipolar_px_sd``, ``under_1px``, ``under_3px``, ``auc_10deg``,
        ``partner_found``.
    """
    stages, vit = stage_matchers(cache, descriptor), None
    with contextlib.suppress(MlError, ImportError):
        vit = vit_matchers(cache, load_descriptor("vit"))
    result: AblationTables = {"stages": _table(cache, pairs, stages, progress)}
    if vit is not None:
        result["vit"] = _table(cache, pairs, vit, progress)
    return result


def vit_matchers(cache: FrameCache, descriptor: Descriptor) -> dict[str, Matcher]:
    """The rows of table III, each with what is above it, by dense matching; and other rules.

    The baseline is the descriptor's own frozen backbone: without a DINOv2 at hand that is the small
    one that ships. Matches outside the sequence's mask are left out in every row alike.
    """
    from ml.keypoints.descriptors.vit_dense import CALIBRATED, DenseConfig, match_dense

    paper = DenseConfig.of_the_paper
    bare: Any = copy.deepcopy(descriptor)
    del bare.network.adapter[:]

    def dense(used: Any, config: DenseConfig) -> Matcher:
        def match(a: int, b: int) -> Matches:
            found = match_dense(cache.frame(a), cache.frame(b), descriptor=used, config=config)
            return inside_mask(found, cache.sequence.mask, cache.sequence.mask)

        return match

    return {
        "baseline (backbone only)": dense(bare, paper(refine=False)),
        "+ adaptation layer": dense(descriptor, paper(refine=False)),
        "+ pixel refinement": dense(descriptor, paper()),
        "+ feature resampling (P / 2)": dense(descriptor, paper(resample=2)),
        "pixel refinement, similarity 0.8": dense(
            descriptor, DenseConfig(ratio=0.0, threshold=CALIBRATED)
        ),
        "pixel refinement, ratio rule": dense(descriptor, DenseConfig()),
    }


def stage_matchers(cache: FrameCache, name: str) -> dict[str, Matcher]:
    """Mutual neighbours under the ratio test, then each stage of ``match_images`` on top."""
    descriptor, kept = load_descriptor(name), FeatureCache()

    def staged(config: MatchConfig) -> Matcher:
        def match(a: int, b: int) -> Matches:
            return kept.match(
                cache.masked(a), cache.masked(b), name, cache.keypoints, config=config
            )

        return match

    def raw(a: int, b: int) -> Matches:
        return cache.raw_matches(a, b, name, descriptor)

    first: dict[str, Matcher] = {"mutual neighbours, ratio test": raw}
    return first | {stage: staged(config) for stage, config in STAGES.items()}


def _table(
    cache: FrameCache,
    pairs: list[tuple[int, int]],
    rows: dict[str, Matcher],
    progress: Progress,
) -> dict[str, RowScores]:
    table: dict[str, RowScores] = {}
    for name, matcher in rows.items():
        progress(len(table), len(rows), f"ablation: {name}")
        table[name] = _scores(cache, pairs, matcher)
    return table


def _scores(cache: FrameCache, pairs: list[tuple[int, int]], matcher: Matcher) -> RowScores:
    rows, poses, counts = [], [], []
    for a, b in pairs:
        found = matcher(a, b)
        counts.append(len(found))
        poses.append(pose_error_deg(cache.sequence, a, b, found))
        if len(found):
            rows.append(epipolar_rates(cache.sequence.fundamental(a, b), found))
    rates = np.array(rows, np.float64).reshape(-1, 4)
    mean = rates.mean(axis=0) if len(rates) else np.full(4, np.nan)
    return {
        "pairs": len(pairs),
        "matches": round(float(np.mean(counts)), 2),
        "epipolar_px": round(float(mean[0]), 4),
        "epipolar_px_sd": round(float(rates[:, 0].std()), 4) if len(rates) else float("nan"),
        "under_1px": round(float(mean[1]), 4),
        "under_3px": round(float(mean[2]), 4),
        "auc_10deg": round(pose_auc(poses, 10), 4),
        "partner_found": round(float(np.mean([count > 0 for count in counts])), 4),
    }

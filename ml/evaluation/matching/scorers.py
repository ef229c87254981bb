"""Protocols of ``evaluate matching`` over all descriptors."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from ml.evaluation.common.features import FeatureCache, seconds_a_pair
from ml.evaluation.common.images import EvaluationImage, read_images, unrelated_pairs
from ml.evaluation.matching.pairs import WarpedPair
from ml.evaluation.matching.papers import PointCache, carried_pair, papers_pair
from ml.evaluation.matching.protocols import CountScore, count_pair, hard_pair, masked_images
from ml.evaluation.matching.scores import (
    HardScores,
    PapersScores,
    Rates,
    count_summary,
    hard_summary,
    papers_summary,
)
from ml.keypoints.descriptors.classical import BEST_FORM, ClassicalDescriptor
from ml.keypoints.descriptors.registry import Descriptor
from ml.types import Progress

TIMED_PAIRS = 1
"""Number of pairs whose time is measured."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Run:
    """Inputs of a run.

    Attributes:
        args: Parsed arguments of the command.
        descriptors: By name.
        images: Images of the warped pairs.
        pairs: Warped pairs; those of one image follow one another.
        frames: Real neighbouring frames.
    """

    args: argparse.Namespace
    descriptors: Mapping[str, Descriptor]
    images: Sequence[EvaluationImage]
    pairs: Sequence[WarpedPair]
    frames: Sequence[tuple[EvaluationImage, EvaluationImage]]
    progress: Progress

    @property
    def folds(self) -> list[int]:
        """0 or 1 for each pair: the half of the images that its source is in."""
        number = {image.name: i % 2 for i, image in enumerate(self.images)}
        return [number[pair.source] for pair in self.pairs]


def score_papers(run: Run) -> dict[str, PapersScores]:
    """Score each descriptor by the papers' protocol, on the key points of one detector."""
    detector, keypoints = run.args.detector, run.args.max_keypoints
    table = {}
    for name, descriptor in run.descriptors.items():
        rows = _by_image(
            run,
            PointCache,
            lambda pair, cache, d=descriptor: papers_pair(  # type: ignore[misc]
                d, pair, detector=detector, keypoints=keypoints, cache=cache
            ),
            f"papers: {name}",
        )
        table[name] = papers_summary(list(rows), run.folds, target=run.args.target)
    return table


def score_carried(run: Run) -> dict[str, PapersScores]:
    """Score the hand-crafted descriptors in their best form, see ``carried_pair``."""
    keypoints = run.args.max_keypoints
    table = {}
    for name, descriptor in run.descriptors.items():
        if isinstance(descriptor, ClassicalDescriptor):
            rows = _by_image(
                run,
                PointCache,
                lambda pair, cache, d=descriptor: carried_pair(  # type: ignore[misc]
                    d, pair, keypoints=keypoints, cache=cache
                ),
                f"carried: {name}",
            )
            key = f"{name} ({BEST_FORM})"
            table[key] = papers_summary(list(rows), run.folds, target=run.args.target)
    return table


def score_hard(run: Run) -> dict[str, HardScores]:
    """Score each descriptor by the hard protocol."""
    timed = [masked_images(pair) for pair in run.pairs[:TIMED_PAIRS]]
    keypoints = run.args.hard_keypoints
    table: dict[str, HardScores] = {}
    for name, descriptor in run.descriptors.items():
        rows = _by_image(
            run,
            FeatureCache,
            lambda pair, cache, n=name, d=descriptor: hard_pair(  # type: ignore[misc]
                d, pair, name=n, keypoints=keypoints, cache=cache
            ),
            f"hard: {name}",
        )
        seconds = seconds_a_pair(timed, name, keypoints)
        table[name] = {**hard_summary(list(rows)), "seconds": seconds}
    return table


def score_unrelated(run: Run) -> dict[str, dict[str, Rates]]:
    """Score each descriptor on pairs of unrelated images, and on real neighbouring frames."""
    args = run.args
    images = read_images(args.folders, count=args.pair_images, long_side_px=args.long_side_px)
    unrelated = unrelated_pairs(images, count=args.pairs, seed=args.seed)
    return {
        name: count_summary(
            _count_scores(run, name, unrelated, f"unrelated: {name}"),
            _count_scores(run, name, run.frames, f"frames: {name}"),
        )
        for name in run.descriptors
    }


SCORERS: dict[str, Callable[[Run], Mapping[str, object]]] = {
    "papers": score_papers,
    "carried": score_carried,
    "hard": score_hard,
    "unrelated": score_unrelated,
}
"""Protocols by name, in the order in which they run and are printed."""

C = TypeVar("C", PointCache, FeatureCache)


def _by_image(
    run: Run, new_cache: Callable[[], C], score: Callable[[WarpedPair, C], T], phase: str
) -> Iterator[T]:
    """A row for each pair, with a new cache for each source image."""
    pair_count = 0
    for _, pairs in groupby(run.pairs, key=lambda pair: pair.source):
        cache = new_cache()
        for pair in pairs:
            yield score(pair, cache)
            pair_count += 1
            run.progress(pair_count, len(run.pairs), phase)


def _count_scores(
    run: Run, name: str, pairs: Sequence[tuple[EvaluationImage, EvaluationImage]], phase: str
) -> list[CountScore]:
    keypoints, descriptor, cache = run.args.hard_keypoints, run.descriptors[name], FeatureCache()
    rows = []
    for number, (a, b) in enumerate(pairs, 1):
        rows.append(count_pair(descriptor, a, b, name=name, keypoints=keypoints, cache=cache))
        run.progress(number, len(pairs), phase)
    return rows

"""The protocols of ``evaluate matching`` over all descriptors; a stopped run resumes.

Rows are kept image by image: the pairs of one source image by one descriptor are worked out, or
read from the work folder, together.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from ml.evaluation.common.descriptors import LEARNED_NAMES
from ml.evaluation.common.features import FeatureCache, seconds_a_pair
from ml.evaluation.common.images import EvaluationImage, read_images, unrelated_pairs
from ml.evaluation.matching.confidence import candidates, compared
from ml.evaluation.matching.kept_rows import WorkFolder, content_of, descriptor_key
from ml.evaluation.matching.metrics import PairMatches
from ml.evaluation.matching.pairs import WarpedPair, as_u8
from ml.evaluation.matching.papers import (
    CoordinatesDescriptor,
    PointCache,
    PointDescriptor,
    carried_pair,
    papers_pair,
)
from ml.evaluation.matching.protocols import (
    CountScore,
    HardScore,
    count_pair,
    hard_pair,
    masked_images,
)
from ml.evaluation.matching.scores import (
    HardScores,
    PapersScores,
    Rates,
    count_summary,
    hard_summary,
    papers_summary,
)
from ml.keypoints import DETECTOR_NAMES, Descriptor
from ml.keypoints.descriptors.classical import BEST_FORM, ClassicalDescriptor
from ml.training.descriptors.validate import with_shuffled_positions
from ml.types import Progress

TIMED_PAIRS = 1
"""One pair is enough to compare times; more would make a run last much longer."""
PAPERS, HARD = "ml.evaluation.matching.papers", "ml.evaluation.matching.protocols"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PairGroup:
    """The pairs of one source image, and the digest of what they show."""

    pairs: tuple[WarpedPair, ...]
    digest: str


def grouped(pairs: Sequence[WarpedPair]) -> list[PairGroup]:
    """Pairs by source image, those of an image being one after another."""
    groups = [tuple(group) for _, group in groupby(pairs, key=lambda pair: pair.source)]
    return [PairGroup(group, content_of(group)) for group in groups]


@dataclass(frozen=True, slots=True)
class Run:
    """What a run works on.

    Attributes:
        args: as parsed. descriptors: by name. images: what is scored. groups: the pairs of each.
        frames: real neighbouring frames. progress: called at every step.
        work: where rows are kept.
    """

    args: argparse.Namespace
    descriptors: Mapping[str, Descriptor]
    images: Sequence[EvaluationImage]
    groups: Sequence[PairGroup]
    frames: Sequence[tuple[EvaluationImage, EvaluationImage]]
    progress: Progress
    work: WorkFolder

    @property
    def pairs(self) -> list[WarpedPair]:
        """The pairs of all images."""
        return [pair for group in self.groups for pair in group.pairs]

    @property
    def folds(self) -> list[int]:
        """0 or 1 for each pair: the half of the images that its source is in."""
        number = {image.name: i % 2 for i, image in enumerate(self.images)}
        return [number[pair.source] for pair in self.pairs]


def score_papers(run: Run) -> dict[str, PapersScores]:
    """Each descriptor under the papers' protocol on the key points of one detector."""
    return {
        name: _papers(run, descriptor, run.args.detector, f"papers: {name}")
        for name, descriptor in run.descriptors.items()
    }


def score_detectors(run: Run) -> dict[str, dict[str, PapersScores]]:
    """Each detector's key points with its own descriptor and with the learned ones."""
    table: dict[str, dict[str, PapersScores]] = {}
    for detector in DETECTOR_NAMES:
        for name, descriptor in run.descriptors.items():
            if name == detector or (name in LEARNED_NAMES and name not in DETECTOR_NAMES):
                phase = f"{name} on {detector}"
                table.setdefault(detector, {})[name] = _papers(run, descriptor, detector, phase)
    return table


def score_carried(run: Run) -> dict[str, PapersScores]:
    """The hand-crafted descriptors in their best form, see ``carried_pair``."""
    table = {}
    for name, descriptor in run.descriptors.items():
        if isinstance(descriptor, ClassicalDescriptor):
            table[f"{name} ({BEST_FORM})"] = _carried(run, descriptor)
    return table


def score_leak(run: Run) -> dict[str, PapersScores]:
    """Coordinates alone, and descriptors that use position with their positions shuffled."""
    table = {"coordinates": _papers(run, CoordinatesDescriptor(), run.args.detector, "leak")}
    for name, descriptor in run.descriptors.items():
        if with_shuffled_positions(descriptor, seed=run.args.seed) is not None:
            table[f"{name}, positions shuffled"] = _papers(
                run, descriptor, run.args.detector, f"leak: {name}", is_shuffled=True
            )
    return table


def score_hard(run: Run) -> dict[str, HardScores]:
    """Each descriptor under the hard protocol; ``seconds`` are measured again in every run."""
    timed = [masked_images(pair) for pair in run.pairs[:TIMED_PAIRS]]
    keypoints = run.args.hard_keypoints
    return {
        name: {**_hard(run, name), "seconds": seconds_a_pair(timed, name, keypoints)}
        for name in run.descriptors
    }


def score_unrelated(run: Run) -> dict[str, dict[str, Rates]]:
    """Each descriptor on pairs of images with nothing in common, and on real frames."""
    args = run.args
    images = read_images(args.folders, count=args.pair_images, long_side_px=args.long_side_px)
    unrelated = unrelated_pairs(images, count=args.pairs, seed=args.seed)
    table = {}
    for name in run.descriptors:
        parts = {
            part: _counted(run, name, pairs, f"{part}: {name}")
            for part, pairs in (("unrelated", unrelated), ("frames", run.frames))
        }
        table[name] = count_summary(parts["unrelated"], parts["frames"])
    return table


def score_confidence(run: Run) -> dict[str, dict[str, dict[str, float]]]:
    """Each descriptor's matches kept by agreement and by a learned confidence, see ``compared``."""
    args = run.args
    images = read_images(args.folders, count=args.pair_images, long_side_px=args.long_side_px)
    nothing = unrelated_pairs(images, count=args.pairs, seed=args.seed)
    table: dict[str, dict[str, dict[str, float]]] = {}
    if len(run.images) < 2:  # one half teaches, the other is judged
        return table
    for name, descriptor in run.descriptors.items():
        found, cache = [], FeatureCache()
        most = args.hard_keypoints
        for done, pair in enumerate(run.pairs):
            run.progress(done, len(run.pairs), f"confidence: {name}")
            if done and pair.source != run.pairs[done - 1].source:
                cache = FeatureCache()
            both = masked_images(pair)
            truth = pair.H_b_from_a
            found.append(
                candidates(*both, descriptor, keypoints=most, cache=cache, H_b_from_a=truth)
            )
        cache = FeatureCache()
        unrelated = [
            candidates(
                (a.rgb, as_u8(a.mask)),
                (b.rgb, as_u8(b.mask)),
                descriptor,
                keypoints=most,
                cache=cache,
                H_b_from_a=None,
            )
            for a, b in nothing
        ]
        table[name] = compared(found, unrelated, run.folds)
    return table


SCORERS: dict[str, Callable[[Run], Mapping[str, object]]] = {
    "papers": score_papers,
    "detectors": score_detectors,
    "carried": score_carried,
    "leak": score_leak,
    "hard": score_hard,
    "unrelated": score_unrelated,
    "confidence": score_confidence,
}
"""The protocols by name, in the order they are run and printed in."""


def _papers(
    run: Run,
    descriptor: PointDescriptor,
    detector: str,
    phase: str,
    *,
    is_shuffled: bool = False,
) -> PapersScores:
    keypoints, seed = run.args.max_keypoints, run.args.seed

    def score(pairs: Sequence[WarpedPair]) -> Iterator[PairMatches]:
        # shuffled anew for each image, so that no row depends on which others were kept
        shuffled = with_shuffled_positions(descriptor, seed=seed) if is_shuffled else None
        told, cache = shuffled or descriptor, PointCache()
        for pair in pairs:
            yield papers_pair(told, pair, detector=detector, keypoints=keypoints, cache=cache)

    settings = {"protocol": "papers", "detector": detector, "keypoints": keypoints}
    settings |= {"shuffled": seed} if is_shuffled else {}
    key = {"name": f"papers-{detector}-{descriptor.name}"}
    found = _by_image(
        run, key | descriptor_key(descriptor, PAPERS) | settings, PairMatches, score, phase
    )
    return papers_summary(found, run.folds, target=run.args.target)


def _carried(run: Run, descriptor: ClassicalDescriptor) -> PapersScores:
    keypoints = run.args.max_keypoints

    def score(pairs: Sequence[WarpedPair]) -> Iterator[PairMatches]:
        cache = PointCache()
        for pair in pairs:
            yield carried_pair(descriptor, pair, keypoints=keypoints, cache=cache)

    key = {"name": f"carried-{descriptor.name}", "protocol": "carried", "keypoints": keypoints}
    key |= descriptor_key(descriptor, PAPERS)
    found = _by_image(run, key, PairMatches, score, f"carried: {descriptor.name}")
    return papers_summary(found, run.folds, target=run.args.target)


def _hard(run: Run, name: str) -> HardScores:
    keypoints, descriptor = run.args.hard_keypoints, run.descriptors[name]

    def score(pairs: Sequence[WarpedPair]) -> Iterator[HardScore]:
        cache = FeatureCache()
        for pair in pairs:
            yield hard_pair(descriptor, pair, name=name, keypoints=keypoints, cache=cache)

    key = {"name": f"hard-{name}", "protocol": "hard", "keypoints": keypoints}
    key |= descriptor_key(descriptor, HARD)
    return hard_summary(_by_image(run, key, HardScore, score, f"hard: {name}"))


def _counted(
    run: Run,
    name: str,
    pairs: Sequence[tuple[EvaluationImage, EvaluationImage]],
    phase: str,
) -> list[CountScore]:
    keypoints, descriptor = run.args.hard_keypoints, run.descriptors[name]

    def score() -> list[CountScore]:
        rows, cache = [], FeatureCache()
        for done, (a, b) in enumerate(pairs):
            run.progress(done, len(pairs), phase)
            rows.append(count_pair(descriptor, a, b, name=name, keypoints=keypoints, cache=cache))
        return rows

    settings = {"protocol": "count", "keypoints": keypoints, "pairs": content_of(pairs)}
    key = {"name": f"count-{name}"} | descriptor_key(descriptor, HARD) | settings
    return run.work.rows(key, CountScore, score)


def _by_image(
    run: Run,
    key: Mapping[str, Any],
    kind: type[T],
    score: Callable[[Sequence[WarpedPair]], Iterator[T]],
    phase: str,
) -> list[T]:
    """A row for each pair, kept under ``key`` and what the pairs of one image show."""
    rows: list[T] = []
    total = len(run.pairs)

    def make(pairs: Sequence[WarpedPair]) -> list[T]:
        made = []
        for row in score(pairs):
            made.append(row)
            run.progress(len(rows) + len(made), total, phase)
        return made

    for group in run.groups:
        full = {**key, "pairs": group.digest}
        rows += run.work.rows(full, kind, lambda pairs=group.pairs: make(pairs))  # type: ignore[misc]
    return rows

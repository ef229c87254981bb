"""``python -m ml evaluate matching``: descriptors on images warped by known transforms.

Three protocols (see ``keypoint_protocols``): the papers' own, the hard one, and images with
nothing in common beside real neighbouring frames; and the check of how much position leaks.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ml.errors import BadInputError, UnknownNameError
from ml.evaluation.keypoint_data import (
    EvaluationImage,
    consecutive_pairs,
    read_images,
    unrelated_pairs,
)
from ml.evaluation.keypoint_descriptors import (
    ALL_NAMES,
    LEARNED_NAMES,
    load_descriptors,
    split_names,
    versions_of,
)
from ml.evaluation.keypoint_pairs import (
    CORE_FAMILIES,
    FAMILIES,
    Pair,
    make_pairs,
    real_homographies,
)
from ml.evaluation.keypoint_pictures import draw_pair, write_picture
from ml.evaluation.keypoint_plots import write_matching_plots
from ml.evaluation.keypoint_protocols import (
    HARD_PE_PX,
    CoordinatesDescriptor,
    PointCache,
    PointDescriptor,
    count_pair,
    hard_pair,
    pair_sides,
    papers_pair,
    projection_error,
    with_shuffled_positions,
)
from ml.evaluation.keypoint_scores import count_summary, hard_summary, papers_summary
from ml.evaluation.keypoint_sides import SideCache, seconds_a_pair
from ml.evaluation.keypoint_tables import matching_tables, update_card
from ml.keypoints import DETECTOR_NAMES
from ml.keypoints.describe import Descriptor
from ml.types import ArrayF64, Progress

PROTOCOLS = ("papers", "detectors", "leak", "hard", "unrelated")
TIMED_PAIRS = 1
FRAME_GAPS = (1, 2, 4)
"""Real homographies are those between frames this far apart."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml evaluate matching``."""
    add = parser.add_argument
    add("folders", type=Path, nargs="+", help="folders of images; FOLDER/frames for a sequence")
    add("--descriptors", nargs="+", default=list(ALL_NAMES), help="names; what is missing is noted")
    add("--protocols", nargs="+", default=list(PROTOCOLS), help=", ".join(PROTOCOLS))
    add("--families", nargs="+", default=list(FAMILIES), help=", ".join(FAMILIES))
    add("--sequences", type=Path, nargs="*", default=[], help="folders of consecutive frames")
    add("--detector", default="sift", help="key points of the papers' protocol")
    add("--max-keypoints", type=int, default=500, help="of the papers' protocol")
    add("--hard-keypoints", type=int, default=1000, help="of the other protocols")
    add("--images", type=int, default=10, help="at most so many images over all folders")
    add("--per-family", type=int, help="at most so many values of a family an image")
    add("--pairs", type=int, default=30, help="pairs of unrelated images")
    add("--pair-images", type=int, default=12, help="at most so many images make those pairs")
    add("--frame-pairs", type=int, default=12, help="pairs of real frames of the sequences")
    add("--long-side-px", type=int, default=720)
    add("--target", type=float, default=0.9995, help="precision that the NNT threshold keeps")
    add("--seed", type=int, default=7)
    add("--card", type=Path, help="model card whose figures are replaced")
    add("--figures", default="matching", help="which figures of the card: the name in their mark")
    add("--sweeps", type=Path, nargs="*", default=[], help="JSON of `train graph --sweep`")
    add("--plots", type=Path, help="folder for the plots")
    add("--pictures", type=Path, help="folder for match pictures: right lines green, wrong red")


@dataclass(slots=True)
class Run:
    """What a run works on.

    Attributes:
        args: as parsed. descriptors: by name. images, pairs: what is scored. frames: real
            neighbouring frames. cache: key points already found. progress: told of every step.
    """

    args: argparse.Namespace
    descriptors: dict[str, Descriptor]
    images: Sequence[EvaluationImage]
    pairs: Sequence[Pair]
    frames: Sequence[tuple[EvaluationImage, EvaluationImage]]
    progress: Progress
    cache: PointCache = field(default_factory=PointCache)

    @property
    def folds(self) -> list[int]:
        """0 or 1 for each pair: whose half of the images it is of."""
        number = {image.name: i % 2 for i, image in enumerate(self.images)}
        return [number[pair.source] for pair in self.pairs]


def run(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Score every named descriptor under every named protocol.

    Returns:
        By protocol and descriptor, see ``keypoint_scores``; ``skipped`` names the descriptors that
        do not load, ``options`` and ``data`` what was scored.
    Raises:
        BadInputError: no image, no descriptor that loads, or options out of range.
        UnknownNameError: no such protocol, family or detector.
    """
    protocols = _checked(args)
    images = read_images(args.folders, count=args.images, long_side_px=args.long_side_px)
    descriptors, skipped = load_descriptors(split_names(args.descriptors))
    frames = consecutive_pairs(
        args.sequences, gaps=FRAME_GAPS, count=args.frame_pairs, long_side_px=args.long_side_px
    )
    homographies = real_homographies(frames)
    pairs = make_pairs(
        images,
        families=split_names(args.families),
        homographies=homographies,
        per_family=args.per_family,
        seed=args.seed,
    )
    work = Run(args, descriptors, images, pairs, frames, progress)
    result: dict[str, Any] = {
        "options": _options(args),
        "data": _data(work, homographies),
        "versions": versions_of(descriptors),
        "skipped": skipped,
    }
    for name in protocols:
        result[name] = _SCORERS[name](work)
    result["sweeps"] = [read_sweep(path) for path in args.sweeps]
    if args.pictures is not None:
        result["pictures"] = write_pictures(work)
    if args.plots is not None:
        result["plots"] = write_matching_plots(args.plots, result)
    if args.card is not None:
        update_card(args.card, args.figures, matching_tables(result))
    return result


def describe(result: dict[str, Any]) -> str:
    """The tables for people."""
    return matching_tables(result)


def read_sweep(path: Path) -> dict[str, Any]:
    """What ``python -m ml train graph --sweep NAME --json PATH`` wrote.

    Raises:
        BadInputError: no such file, or no sweep in it.
    """
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        raise BadInputError(f"{path.name}: expected the JSON of a sweep") from None
    if not isinstance(found, dict) or not {"sweep", "table"} <= set(found):
        raise BadInputError(f"{path.name}: expected 'sweep' and 'table' in it")
    return {key: found[key] for key in ("sweep", "steps", "rows", "table") if key in found}


def score_papers(work: Run) -> dict[str, Any]:
    """Each descriptor under the papers' protocol on the key points of one detector."""
    return {
        name: _papers(work, descriptor, work.args.detector, f"papers: {name}")
        for name, descriptor in work.descriptors.items()
    }


def score_detectors(work: Run) -> dict[str, Any]:
    """Each detector's key points with its own descriptor and with the learned ones."""
    table: dict[str, Any] = {}
    for detector in DETECTOR_NAMES:
        for name, descriptor in work.descriptors.items():
            if name == detector or (name in LEARNED_NAMES and name not in DETECTOR_NAMES):
                phase = f"{name} on {detector}"
                table.setdefault(detector, {})[name] = _papers(work, descriptor, detector, phase)
    return table


def score_leak(work: Run) -> dict[str, Any]:
    """Coordinates alone, and descriptors that use position with their positions shuffled."""
    table = {"coordinates": _papers(work, CoordinatesDescriptor(), work.args.detector, "leak")}
    for name, descriptor in work.descriptors.items():
        shuffled = with_shuffled_positions(descriptor, seed=work.args.seed)
        if shuffled is not None:
            table[f"{name}, positions shuffled"] = _papers(
                work, shuffled, work.args.detector, f"leak: {name}"
            )
    return table


def score_hard(work: Run) -> dict[str, Any]:
    """Each descriptor under the hard protocol."""
    table = {}
    keypoints = work.args.hard_keypoints
    timed = [pair_sides(pair) for pair in work.pairs[:TIMED_PAIRS]]
    for name, descriptor in work.descriptors.items():
        scores, cache = [], SideCache()
        for done, pair in enumerate(work.pairs):
            work.progress(done, len(work.pairs), f"hard: {name}")
            scores.append(hard_pair(descriptor, pair, name=name, keypoints=keypoints, cache=cache))
        table[name] = hard_summary(scores) | {"seconds": seconds_a_pair(timed, name, keypoints)}
    return table


def score_unrelated(work: Run) -> dict[str, Any]:
    """Each descriptor on pairs of images with nothing in common, and on real frames."""
    args = work.args
    images = read_images(args.folders, count=args.pair_images, long_side_px=args.long_side_px)
    unrelated = unrelated_pairs(images, count=args.pairs, seed=args.seed)
    both = [*unrelated, *work.frames]
    keypoints = args.hard_keypoints
    table = {}
    for name, descriptor in work.descriptors.items():
        scores, cache = [], SideCache()
        for done, (a, b) in enumerate(both):
            work.progress(done, len(both), f"unrelated: {name}")
            scores.append(count_pair(descriptor, a, b, name=name, keypoints=keypoints, cache=cache))
        table[name] = count_summary(scores[: len(unrelated)], scores[len(unrelated) :])
    return table


def write_pictures(work: Run) -> list[str]:
    """A pair of each family by each descriptor: ``match_images``, and mutual neighbours alone."""
    chosen: dict[str, Pair] = {}
    for pair in work.pairs:
        if pair.source == work.images[0].name or pair.family not in chosen:
            chosen[pair.family] = pair
    names, keypoints = [], work.args.hard_keypoints
    for family, pair in chosen.items():
        for name, descriptor in work.descriptors.items():
            cache, sides = SideCache(), pair_sides(pair)
            for stage, found in (
                ("match_images", cache.match(*sides, name, keypoints)),
                ("mutual", cache.mutual(*sides, descriptor, keypoints=keypoints)),
            ):
                is_right = projection_error(pair, found) <= HARD_PE_PX
                title = f"{name} ({stage}), {family.replace('_', ' ')} {pair.value:g}"
                names.append(f"{family}-{name}-{stage}.jpg")
                picture = draw_pair(pair.a, pair.b, found, is_right, title=title)
                write_picture(work.args.pictures / names[-1], picture)
    return names


_SCORERS = {
    "papers": score_papers,
    "detectors": score_detectors,
    "leak": score_leak,
    "hard": score_hard,
    "unrelated": score_unrelated,
}


def _papers(work: Run, descriptor: PointDescriptor, detector: str, phase: str) -> dict[str, Any]:
    found = []
    for done, pair in enumerate(work.pairs):
        work.progress(done, len(work.pairs), phase)
        found.append(
            papers_pair(
                descriptor,
                pair,
                detector=detector,
                keypoints=work.args.max_keypoints,
                cache=work.cache,
            )
        )
    work.cache.forget_rows()
    return papers_summary(found, work.folds, target=work.args.target)


def _checked(args: argparse.Namespace) -> list[str]:
    protocols = split_names(args.protocols)
    for kind, names, known in (
        ("protocol", protocols, PROTOCOLS),
        ("family", split_names(args.families), FAMILIES),
        ("detector", [args.detector], DETECTOR_NAMES),
    ):
        for name in names:
            if name not in known:
                raise UnknownNameError(kind, name, list(known))
    for option in ("max_keypoints", "hard_keypoints", "images", "pairs", "frame_pairs"):
        if getattr(args, option) < 1:
            raise BadInputError(f"{option}: expected at least 1, got {getattr(args, option)}")
    if not 0.0 < args.target <= 1.0:
        raise BadInputError(f"target: expected a precision in (0, 1], got {args.target}")
    return [name for name in PROTOCOLS if name in protocols]


def _options(args: argparse.Namespace) -> dict[str, Any]:
    names = ("detector", "max_keypoints", "hard_keypoints", "long_side_px", "target", "seed")
    return {name: getattr(args, name) for name in (*names, "per_family")}


def _data(work: Run, homographies: Sequence[ArrayF64]) -> dict[str, Any]:
    return {
        "folders": list(dict.fromkeys(image.name.split("/")[0] for image in work.images)),
        "images": len(work.images),
        "scenes": len({image.scene for image in work.images}),
        "pairs": {f: sum(p.family == f for p in work.pairs) for f in FAMILIES},
        "core_pairs": sum(p.family in CORE_FAMILIES for p in work.pairs),
        "frame_pairs": len(work.frames),
        "real_homographies": len(homographies),
    }

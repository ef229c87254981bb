"""``python -m ml evaluate matching``: descriptors on images warped by known transforms.

``papers`` has the papers' own protocol, ``protocols`` the hard one, unrelated images and real
neighbouring frames.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from ml.errors import BadInputError, UnknownNameError
from ml.evaluation.common.card_table import card_table, read_results
from ml.evaluation.common.descriptors import (
    ALL_NAMES,
    load_descriptors,
    split_names,
    versions_of,
)
from ml.evaluation.common.features import FeatureCache
from ml.evaluation.common.images import consecutive_pairs, read_images
from ml.evaluation.common.output import add_output_arguments, update_result
from ml.evaluation.common.pictures import draw_pair, write_picture
from ml.evaluation.matching.homographies import real_homographies
from ml.evaluation.matching.pairs import (
    CORE_FAMILIES,
    FAMILIES,
    WIDE_FAMILIES,
    WarpedPair,
    make_pairs,
)
from ml.evaluation.matching.plots import write_matching_plots
from ml.evaluation.matching.protocols import HARD_PE_PX, masked_images, projection_error
from ml.evaluation.matching.scorers import SCORERS, Run
from ml.evaluation.matching.scores import HardScores, PapersScores, Rates
from ml.evaluation.matching.tables import matching_tables
from ml.keypoints.detect import DETECTOR_NAMES
from ml.reports.cards import update_card
from ml.types import ArrayF64, Progress

PROTOCOLS = tuple(SCORERS)
FRAME_GAPS = (1, 2, 4)
"""Distances in frames of the pairs that give real homographies."""


class MatchingOptions(TypedDict):
    """Options of the command."""

    detector: str
    max_keypoints: int
    hard_keypoints: int
    long_side_px: int
    target: float
    seed: int
    per_family: int | None


class MatchingData(TypedDict):
    """Scored data: pairs by family, and the number of the rest."""

    folders: list[str]
    images: int
    scenes: int
    pairs: dict[str, int]
    core_pairs: int
    frame_pairs: int
    real_homographies: int


class MatchingReport(TypedDict):
    """Result of ``run``, without protocols that were not requested."""

    options: MatchingOptions
    data: MatchingData
    versions: dict[str, str]
    skipped: dict[str, str]
    papers: NotRequired[dict[str, PapersScores]]
    carried: NotRequired[dict[str, PapersScores]]
    hard: NotRequired[dict[str, HardScores]]
    unrelated: NotRequired[dict[str, dict[str, Rates]]]
    pictures: NotRequired[list[str]]
    plots: NotRequired[list[str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml evaluate matching``."""
    add = parser.add_argument
    add("folders", type=Path, nargs="+", help="folders of images; FOLDER/frames for a sequence")
    add("--descriptors", nargs="+", default=list(ALL_NAMES), help="names; missing ones are noted")
    add("--protocols", nargs="+", default=list(PROTOCOLS), help=", ".join(PROTOCOLS))
    families = (*CORE_FAMILIES, *WIDE_FAMILIES)
    add("--families", nargs="+", default=list(families), help=", ".join(FAMILIES))
    add("--sequences", type=Path, nargs="*", default=[], help="folders of consecutive frames")
    add("--detector", default="sift", help="detector of the key points in the papers' protocol")
    add("--max-keypoints", type=int, default=500, help="of the papers' protocol")
    add("--hard-keypoints", type=int, default=1000, help="of the other protocols")
    add("--images", type=int, default=10, help="at most this many images over all folders")
    add("--per-family", type=int, help="at most this many values of a family for each image")
    add("--pairs", type=int, default=30, help="pairs of unrelated images")
    add("--pair-images", type=int, default=12, help="at most this many images for those pairs")
    add("--frame-pairs", type=int, default=12, help="pairs of real frames of the sequences")
    add("--long-side-px", type=int, default=720)
    add("--target", type=float, default=0.9995, help="precision that the NNT threshold keeps")
    add("--seed", type=int, default=7)
    add_output_arguments(parser)


def run(args: argparse.Namespace, progress: Progress) -> MatchingReport:
    """Score every named descriptor by every named protocol.

    Returns:
        Scores by protocol and descriptor; ``skipped``: descriptors that do not load.
    Raises:
        BadInputError: no image, no descriptor that loads, or options out of range.
        UnknownNameError: no such protocol, family or detector.
    """
    protocols = _parse_protocols(args)
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
    about = {
        "options": _options(args),
        "data": _data(work, homographies),
        "versions": versions_of(descriptors),
        "skipped": skipped,
    }
    scored = {name: SCORERS[name](work) for name in protocols}
    # Protocols are keys, which mypy cannot check.
    result = cast("MatchingReport", {**about, **scored})
    if args.pictures is not None:
        result["pictures"] = write_pictures(work)
    if args.plots is not None:
        result["plots"] = write_matching_plots(args.plots, result)
    merged = result if args.update is None else update_result(args.update, result)
    if args.card is not None:
        update_card(args.card, "matching", card_table([merged, *read_results(args.results)]))
    return result


def describe(result: MatchingReport) -> str:
    """Markdown tables of the result."""
    return matching_tables(result)


def write_pictures(work: Run) -> list[str]:
    """Draw a pair of each family, matched by ``match_images`` and by mutual neighbours."""
    chosen: dict[str, WarpedPair] = {}
    for pair in work.pairs:
        if pair.source == work.images[0].name or pair.family not in chosen:
            chosen[pair.family] = pair
    names, keypoints = [], work.args.hard_keypoints
    for family, pair in chosen.items():
        for name, descriptor in work.descriptors.items():
            cache, images = FeatureCache(), masked_images(pair)
            for stage, matches in (
                ("match_images", cache.match(*images, name, keypoints)),
                ("mutual", cache.mutual(*images, descriptor, keypoints=keypoints)),
            ):
                is_right = projection_error(pair, matches) <= HARD_PE_PX
                title = f"{name} ({stage}), {family.replace('_', ' ')} {pair.value:g}"
                names.append(f"{family}-{name}-{stage}.jpg")
                picture = draw_pair(pair.a, pair.b, matches, is_right, title=title)
                write_picture(work.args.pictures / names[-1], picture)
    return names


def _parse_protocols(args: argparse.Namespace) -> list[str]:
    protocols = split_names(args.protocols)
    for kind, names, choices in (
        ("protocol", protocols, PROTOCOLS),
        ("family", split_names(args.families), FAMILIES),
        ("detector", [args.detector], DETECTOR_NAMES),
    ):
        for name in names:
            if name not in choices:
                raise UnknownNameError(kind, name, list(choices))
    counts = ("max_keypoints", "hard_keypoints", "images", "pairs", "pair_images", "frame_pairs")
    for option in counts:
        if getattr(args, option) < 1:
            raise BadInputError(f"{option}: expected at least 1, got {getattr(args, option)}")
    if not 0.0 < args.target <= 1.0:
        raise BadInputError(f"target: expected a precision in (0, 1], got {args.target}")
    return [name for name in PROTOCOLS if name in protocols]


def _options(args: argparse.Namespace) -> MatchingOptions:
    return {
        "detector": args.detector,
        "max_keypoints": args.max_keypoints,
        "hard_keypoints": args.hard_keypoints,
        "long_side_px": args.long_side_px,
        "target": args.target,
        "seed": args.seed,
        "per_family": args.per_family,
    }


def _data(work: Run, homographies: Sequence[ArrayF64]) -> MatchingData:
    return {
        "folders": list(dict.fromkeys(image.name.split("/")[0] for image in work.images)),
        "images": len(work.images),
        "scenes": len({image.scene for image in work.images}),
        "pairs": dict(Counter(pair.family for pair in work.pairs)),
        "core_pairs": sum(p.family in CORE_FAMILIES for p in work.pairs),
        "frame_pairs": len(work.frames),
        "real_homographies": len(homographies),
    }

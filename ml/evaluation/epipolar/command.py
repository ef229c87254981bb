"""``python -m ml evaluate epipolar``: matches of a calibrated sequence against its poses."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np

from ml.errors import BadInputError
from ml.evaluation.common.card_table import card_table, read_results
from ml.evaluation.common.descriptors import (
    ALL_NAMES,
    load_descriptors,
    split_names,
    versions_of,
)
from ml.evaluation.common.features import FeatureCache, seconds_a_pair
from ml.evaluation.common.images import EvaluationImage, read_image, read_images
from ml.evaluation.common.pictures import draw_pair, write_picture
from ml.evaluation.common.renew import renew
from ml.evaluation.epipolar.ablation import AblationTables, ablation
from ml.evaluation.epipolar.dense import dense_counts, dense_scores
from ml.evaluation.epipolar.noise import TruthNoise, truth_noise
from ml.evaluation.epipolar.scores import (
    EpipolarScore,
    FrameCache,
    gap_pairs,
    score_pair,
    summary,
    t_test,
)
from ml.evaluation.epipolar.tables import (
    PAPER_GAP,
    dense_line,
    epipolar_tables,
    write_page,
)
from ml.evaluation.matching.plots import write_epipolar_plots
from ml.evaluation.matching.protocols import count_pair
from ml.evaluation.matching.scores import count_summary
from ml.keypoints import Descriptor, symmetric_epipolar_px
from ml.reports.cards import update_card
from ml.training.common.sequence import CalibratedSequence, read_sequence
from ml.types import Progress

GAPS = (1, 3, 10, 16, 20)
"""The paper samples at 16 (section IV-A); nearer and farther ones show how quality falls."""


class EpipolarOptions(TypedDict):
    """How many key points, which gaps, and how many pairs that made."""

    max_keypoints: int
    gaps: list[int]
    pairs: int


class EpipolarAblation(AblationTables):
    """What each part adds, at a gap."""

    gap: int


class EpipolarReport(TypedDict):
    """What ``run`` returns."""

    options: EpipolarOptions
    sequence: str
    frames: int
    versions: dict[str, str]
    skipped: dict[str, str]
    scores: dict[str, dict[str, dict[str, float]]]
    seconds: dict[str, float]
    compared_with: str
    t_test: dict[str, float]
    truth: dict[str, TruthNoise]
    scored_pairs: dict[str, list[EpipolarScore]]
    cross_sequence: NotRequired[dict[str, dict[str, float]]]
    ablation: NotRequired[EpipolarAblation]
    pictures: NotRequired[list[str]]
    plots: NotRequired[list[str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml evaluate epipolar``."""
    add = parser.add_argument
    add("sequence", type=Path, help="a folder in the layout of sinus-4584")
    add("--descriptors", nargs="+", default=list(ALL_NAMES), help="names; missing ones are noted")
    add("--gaps", nargs="+", default=[str(gap) for gap in GAPS], help="frame gaps")
    add("--max-keypoints", type=int, default=1000)
    add("--pairs", type=int, default=10, help="at most this many pairs for each gap")
    add(
        "--others",
        type=Path,
        nargs="*",
        default=[],
        help="images from elsewhere, which must not match",
    )
    add(
        "--other-pairs",
        type=int,
        default=10,
        help="number of pairs of a frame and an image from elsewhere",
    )
    add(
        "--long-side-px",
        type=int,
        default=720,
        help="long side of the pairs with images from elsewhere",
    )
    add(
        "--dense",
        nargs="*",
        metavar="VIT",
        help="also score vit, or vit:FILE with other weights, by dense patches, on the same pairs",
    )
    add(
        "--ablation",
        action="store_true",
        help="score what each part adds, at the paper's gap of 16",
    )
    add("--ablation-card", type=Path, help="model card whose section 'dense' is replaced by it")
    add("--card", type=Path, help="model card whose table 'matching' is replaced")
    add("--page", type=Path, help="page whose tables 'poses' and 'elsewhere' are replaced")
    add("--section", default="poses", help="section of the page for the poses of this run")
    add("--renew", type=Path, help="JSON result whose rows of these descriptors are replaced")
    add(
        "--beside",
        type=Path,
        nargs="*",
        default=[],
        help="JSON results with more columns for that table",
    )
    add("--plots", type=Path, help="folder for the plot")
    add(
        "--pictures",
        type=Path,
        help="folder for pictures of matches: right lines green, wrong lines red",
    )


def run(args: argparse.Namespace, progress: Progress) -> EpipolarReport:
    """Score each descriptor at each gap.

    Returns:
        scores: by descriptor, by gap and ``all``, see ``scores.summary``; t_test: p of
        each descriptor against the last one named; truth: the ground truth's own noise by gap;
        cross_sequence: matches with images from elsewhere; scored_pairs: every pair's score.
    Raises:
        BadInputError: no such sequence, gaps out of range, no descriptor that loads.
    """
    gaps = _checked_gaps(args)
    sequence = read_sequence(args.sequence)
    descriptors, skipped = load_descriptors(split_names(args.descriptors))
    chosen = {gap: gap_pairs(sequence, gap, args.pairs) for gap in gaps}
    cache = FrameCache(sequence, args.max_keypoints)
    pairs = [pair for gap in gaps for pair in chosen[gap]]
    scores = _score_all(cache, descriptors, pairs, progress)
    if args.dense is not None:
        scores |= dense_scores(cache, pairs, progress, split_names(args.dense) or ["vit"])
    timed = [(cache.masked(a), cache.masked(b)) for a, b in pairs[:: max(1, len(pairs) // 2)][:2]]
    ours = next(reversed(descriptors))
    result: EpipolarReport = {
        "options": {
            "max_keypoints": args.max_keypoints,
            "gaps": gaps,
            "pairs": sum(map(len, chosen.values())),
        },
        "sequence": sequence.name,
        "frames": len(sequence.frames),
        "versions": versions_of(descriptors),
        "skipped": skipped,
        "scores": {name: _by_gap(rows, gaps) for name, rows in scores.items()},
        "seconds": {n: seconds_a_pair(timed, n, args.max_keypoints) for n in descriptors},
        "compared_with": ours,
        "t_test": {n: t_test(scores[ours], rows) for n, rows in scores.items() if n != ours},
        "truth": {str(gap): truth_noise(cache, chosen[gap]) for gap in gaps},
        "scored_pairs": scores,
    }
    if args.others:
        result["cross_sequence"] = cross_sequence(args, sequence, descriptors, progress)
    if args.ablation:
        gap = PAPER_GAP if PAPER_GAP in chosen else gaps[-1]
        result["ablation"] = {"gap": gap, **ablation(cache, chosen[gap], ours, progress)}
        if args.ablation_card is not None:
            update_card(args.ablation_card, "dense", dense_line(result))
    if args.pictures is not None:
        result["pictures"] = write_pictures(args.pictures, cache, descriptors, chosen)
    whole = result if args.renew is None else renew(args.renew, result)
    if args.plots is not None:
        result["plots"] = write_epipolar_plots(args.plots, whole)
    if args.page is not None:
        write_page(args.page, whole, section=args.section)
    if args.card is not None:
        update_card(args.card, "matching", card_table([whole, *read_results(args.beside)]))
    return result


def describe(result: EpipolarReport) -> str:
    """The tables for people."""
    return epipolar_tables(result)


def cross_sequence(
    args: argparse.Namespace,
    sequence: CalibratedSequence,
    descriptors: dict[str, Descriptor],
    progress: Progress,
) -> dict[str, dict[str, float]]:
    """Matches and inliers between frames and images from elsewhere: there should be none.

    Source: dinov2-adaptation-endoscopic-matching, section IV-B, table II.
    """
    images = read_images(args.others, count=args.other_pairs, long_side_px=args.long_side_px)
    chosen = np.linspace(0, len(sequence.frames) - 1, args.other_pairs).round().astype(int)
    frames = [read_image(sequence.frames[i], long_side_px=args.long_side_px) for i in chosen]
    pairs: list[tuple[EvaluationImage, EvaluationImage]] = [
        (frame, images[i % len(images)])
        for i, frame in enumerate(frames)
        if images[i % len(images)].scene != frame.scene
    ]
    table = {}
    for name, descriptor in descriptors.items():
        rows, cache = [], FeatureCache()
        for done, (a, b) in enumerate(pairs):
            progress(done, len(pairs), f"{name}, elsewhere")
            keypoints = args.max_keypoints
            rows.append(count_pair(descriptor, a, b, name=name, keypoints=keypoints, cache=cache))
        table[name] = count_summary(rows, []).get("unrelated", {"pairs": 0})
    if args.dense is not None:
        names = split_names(args.dense) or ["vit"]
        for name, found in dense_counts(pairs, progress, names).items():
            table[name] = count_summary(found, []).get("unrelated", {"pairs": 0})
    return table


def write_pictures(
    folder: Path,
    cache: FrameCache,
    descriptors: dict[str, Descriptor],
    chosen: dict[int, list[tuple[int, int]]],
) -> list[str]:
    """The middle pair of each gap, matched by each descriptor; right is under 3 px."""
    names = []
    for gap, pairs in chosen.items():
        a, b = pairs[len(pairs) // 2]
        for name in descriptors:
            found = cache.match(a, b, name)
            distance = symmetric_epipolar_px(
                cache.sequence.fundamental(a, b), found.xy_a, found.xy_b
            )
            picture = draw_pair(
                cache.frame(a), cache.frame(b), found, distance / 2 < 3, title=f"{name}, gap {gap}"
            )
            names.append(f"gap-{gap}-{name}.jpg")
            write_picture(folder / names[-1], picture)
    return names


def _score_all(
    cache: FrameCache,
    descriptors: dict[str, Descriptor],
    pairs: Sequence[tuple[int, int]],
    progress: Progress,
) -> dict[str, list[EpipolarScore]]:
    scores: dict[str, list[EpipolarScore]] = {name: [] for name in descriptors}
    total, done = len(descriptors) * len(pairs), 0
    for name, descriptor in descriptors.items():
        for a, b in pairs:
            progress(done, total, f"{name}, gap {b - a}")
            done += 1
            scores[name].append(score_pair(cache, a, b, name=name, descriptor=descriptor))
    return scores


def _by_gap(rows: Sequence[EpipolarScore], gaps: Sequence[int]) -> dict[str, dict[str, float]]:
    table = {str(gap): summary([row for row in rows if row.gap == gap]) for gap in gaps}
    return table | {"all": summary(rows)}


def _checked_gaps(args: argparse.Namespace) -> list[int]:
    for option in ("max_keypoints", "pairs", "other_pairs"):
        if getattr(args, option) < 1:
            raise BadInputError(f"{option}: expected at least 1, got {getattr(args, option)}")
    words = split_names(args.gaps)
    try:
        gaps = [int(word) for word in words]
    except ValueError:
        raise BadInputError(f"gaps: expected whole numbers, got {', '.join(words)}") from None
    if not gaps:
        raise BadInputError("gaps: expected at least one, got none")
    return gaps

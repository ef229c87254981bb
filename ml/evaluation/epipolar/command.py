"""``python -m ml evaluate epipolar``: matches of a calibrated sequence against its poses."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

from ml.errors import BadInputError
from ml.evaluation.common.card_table import card_table, read_results
from ml.evaluation.common.descriptors import (
    ALL_NAMES,
    load_descriptors,
    split_names,
    versions_of,
)
from ml.evaluation.common.features import seconds_a_pair
from ml.evaluation.common.output import add_output_arguments, update_result
from ml.evaluation.common.pictures import draw_pair, write_picture
from ml.evaluation.epipolar.dense import dense_scores
from ml.evaluation.epipolar.scores import (
    EpipolarScore,
    FrameCache,
    gap_pairs,
    score_pair,
    summary,
    t_test,
)
from ml.evaluation.epipolar.tables import epipolar_tables, write_page
from ml.evaluation.matching.plots import write_epipolar_plots
from ml.keypoints.descriptors.registry import Descriptor
from ml.keypoints.verification.estimation import symmetric_epipolar_px
from ml.reports.cards import update_card
from ml.training.common.sequence import read_sequence
from ml.types import Progress

GAPS = (1, 3, 10, 16, 20)
"""Default distances in frames; the paper's is 16 (section IV-A)."""


class EpipolarOptions(TypedDict):
    """Number of key points, gaps, and number of pairs."""

    max_keypoints: int
    gaps: list[int]
    pairs: int


class EpipolarReport(TypedDict):
    """Result of ``run``."""

    options: EpipolarOptions
    sequence: str
    frames: int
    versions: dict[str, str]
    skipped: dict[str, str]
    scores: dict[str, dict[str, dict[str, float]]]
    seconds: dict[str, float]
    compared_with: str
    t_test: dict[str, float]
    scored_pairs: dict[str, list[EpipolarScore]]
    pictures: NotRequired[list[str]]
    plots: NotRequired[list[str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml evaluate epipolar``."""
    add = parser.add_argument
    add("sequence", type=Path, help="a folder in the layout of sinus-4584")
    add("--descriptors", nargs="+", default=list(ALL_NAMES), help="names; missing ones are noted")
    add("--gaps", nargs="+", default=[str(gap) for gap in GAPS], help="frame gaps")
    add("--max-keypoints", type=int, default=1000)
    add("--pairs", type=int, default=10, help="at most this many pairs for each gap")
    add("--dense", action="store_true", help="also score the dense patches of vit")
    add("--page", type=Path, help="page whose table 'poses' is replaced")
    add_output_arguments(parser)


def run(args: argparse.Namespace, progress: Progress) -> EpipolarReport:
    """Score each descriptor at each gap.

    Returns:
        scores: by descriptor, by gap and ``all``, see ``scores.summary``; t_test: p of
        each descriptor against the last one named; scored_pairs: every pair's score.
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
    if args.dense:
        scores |= dense_scores(cache, pairs, progress)
    timed = [(cache.masked(a), cache.masked(b)) for a, b in pairs[:: max(1, len(pairs) // 2)][:2]]
    last_name = next(reversed(descriptors))
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
        "scores": {name: _means_by_gap(rows, gaps) for name, rows in scores.items()},
        "seconds": {n: seconds_a_pair(timed, n, args.max_keypoints) for n in descriptors},
        "compared_with": last_name,
        "t_test": {
            n: t_test(scores[last_name], rows) for n, rows in scores.items() if n != last_name
        },
        "scored_pairs": scores,
    }
    if args.pictures is not None:
        result["pictures"] = write_pictures(args.pictures, cache, descriptors, chosen)
    merged = result if args.update is None else update_result(args.update, result)
    if args.plots is not None:
        result["plots"] = write_epipolar_plots(args.plots, merged)
    if args.page is not None:
        write_page(args.page, merged)
    if args.card is not None:
        update_card(args.card, "matching", card_table([merged, *read_results(args.results)]))
    return result


def describe(result: EpipolarReport) -> str:
    """Markdown tables of the result."""
    return epipolar_tables(result)


def write_pictures(
    folder: Path,
    cache: FrameCache,
    descriptors: dict[str, Descriptor],
    chosen: dict[int, list[tuple[int, int]]],
) -> list[str]:
    """Draw the middle pair of each gap by each descriptor; a match is right below 3 px."""
    names = []
    for gap, pairs in chosen.items():
        a, b = pairs[len(pairs) // 2]
        for name in descriptors:
            matches = cache.match(a, b, name)
            distance = symmetric_epipolar_px(
                cache.sequence.fundamental(a, b), matches.xy_a, matches.xy_b
            )
            picture = draw_pair(
                cache.frame(a),
                cache.frame(b),
                matches,
                distance / 2 < 3,
                title=f"{name}, gap {gap}",
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
    total, pair_count = len(descriptors) * len(pairs), 0
    for name, descriptor in descriptors.items():
        for a, b in pairs:
            progress(pair_count, total, f"{name}, gap {b - a}")
            pair_count += 1
            scores[name].append(score_pair(cache, a, b, name=name, descriptor=descriptor))
    return scores


def _means_by_gap(
    rows: Sequence[EpipolarScore], gaps: Sequence[int]
) -> dict[str, dict[str, float]]:
    table = {str(gap): summary([row for row in rows if row.gap == gap]) for gap in gaps}
    return table | {"all": summary(rows)}


def _checked_gaps(args: argparse.Namespace) -> list[int]:
    for option in ("max_keypoints", "pairs"):
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

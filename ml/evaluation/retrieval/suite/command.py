"""``python -m ml evaluate retrieval --suite``: arguments and their checks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NotRequired, cast

from ml.errors import BadInputError
from ml.evaluation.common.data import data_folder
from ml.evaluation.retrieval.suite.baselines import baseline_methods
from ml.evaluation.retrieval.suite.config import SHIPPED, SuiteConfig, read_suite
from ml.evaluation.retrieval.suite.methods import SuiteMethod, encoder_methods
from ml.evaluation.retrieval.suite.query_methods import QueryMethod
from ml.evaluation.retrieval.suite.run import SuiteResult, read_sets, run_suite
from ml.evaluation.retrieval.suite.table import card_figures, card_lines
from ml.extras import require_extra
from ml.reports.cards import update_card
from ml.types import Progress


class SuiteReport(SuiteResult):
    """Result of the command.

    Attributes:
        suite: name of the file.
        choose: whether a choice was requested.
        plots: files written.
    """

    suite: str
    choose: bool
    plots: NotRequired[list[str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that go with ``--suite``."""
    group = parser.add_argument_group("suite")
    group.add_argument(
        "--suite",
        nargs="?",
        const=Path(SHIPPED.name),
        type=Path,
        metavar="FILE",
        help="score over all sets of a suite file; without a file, the shipped suite.toml",
    )
    group.add_argument(
        "--data",
        type=Path,
        help="folder that the paths of the suite start from; by default TESSERA_DATA",
    )
    group.add_argument(
        "--draws", type=int, help="draws of the stain swap, instead of those of the suite file"
    )
    group.add_argument("--cache", type=Path, help="folder that keeps vectors (made if needed)")
    group.add_argument(
        "--expand", type=int, default=0, help="also score encoders with expanded queries"
    )
    group.add_argument(
        "--diffuse", action="store_true", help="also score encoders with diffusion over the gallery"
    )
    group.add_argument(
        "--learn",
        action="store_true",
        help="also score encoders under a metric learned from the labels of the other patients",
    )
    group.add_argument(
        "--choose", action="store_true", help="choose among several --encoder by the suite's rule"
    )


def run(args: argparse.Namespace, progress: Progress) -> SuiteReport:
    """Score a suite by command line arguments.

    Raises:
        BadInputError: options, a suite file or data that cannot be scored.
    """
    config, data = _check_options(args)
    encoders = encoder_methods(args.encoder or ["default"])
    if args.choose and len(encoders) < 2:
        raise BadInputError("--choose: expected two or more --encoder to choose among")
    encoders = (*encoders, *_query_variants(encoders, args))
    sets = read_sets(config, data, progress)
    baselines = baseline_methods(
        config.training, data, seed=config.seed, cache=args.cache, progress=progress
    )
    results = run_suite(config, sets, (*encoders, *baselines), cache=args.cache, progress=progress)
    # mypy cannot see that ``scores`` has none of the other keys.
    result = cast("SuiteReport", {"suite": args.suite.name, "choose": args.choose, **results})
    if args.card is not None:
        write_card(args.card, args.suite.stem, result)
    if args.plots is not None:
        from ml.evaluation.retrieval.suite.plots import write_plots

        result["plots"] = write_plots(args.plots, result)
    return result


def write_card(card: Path, section: str, result: SuiteReport) -> None:
    """Replace the section of a card that has the suite's name.

    The shipped suite gets a table, other suites get lines.

    Raises:
        BadInputError: no such card, or no such section in it.
    """
    figures = card_figures if section == SHIPPED.stem else card_lines
    update_card(card, section, figures(result))


def _query_variants(encoders: Sequence[SuiteMethod], args: argparse.Namespace) -> list[SuiteMethod]:
    """Methods of the same vectors with the other chosen query methods."""
    ways = {
        "expanded": QueryMethod(expand=args.expand) if args.expand else None,
        "diffused": QueryMethod(diffuse=True) if args.diffuse else None,
        "expanded, diffused": (
            QueryMethod(expand=args.expand, diffuse=True) if args.expand and args.diffuse else None
        ),
        "learned": QueryMethod(learn=True) if args.learn else None,
    }
    return [
        replace(method, name=f"{method.name}, {word}", query_method=query_method)
        for word, query_method in ways.items()
        if query_method is not None
        for method in encoders
    ]


def _check_options(args: argparse.Namespace) -> tuple[SuiteConfig, Path]:
    """Refuse bad options before anything is computed."""
    if args.folder is not None:
        raise BadInputError("--suite has its own sets: expected no folder with it")
    config = read_suite(args.suite)
    if args.expand < 0:
        raise BadInputError(f"--expand: expected 0 or more, got {args.expand}")
    if args.draws is not None:
        if args.draws < 0:
            raise BadInputError(f"--draws: expected 0 or more, got {args.draws}")
        config = replace(config, draws=args.draws)
    data = data_folder(args.data)
    if args.plots is not None:
        require_extra("matplotlib", extra="plots")
        args.plots.mkdir(parents=True, exist_ok=True)
    if args.cache is not None:
        args.cache.mkdir(parents=True, exist_ok=True)
    return config, data

"""``python -m ml evaluate retrieval --suite``: arguments, and what is refused before it runs."""

from __future__ import annotations

import argparse
import importlib.util
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from ml.errors import BadInputError
from ml.evaluation.retrieval.suite.baselines import baseline_methods
from ml.evaluation.retrieval.suite.config import SHIPPED, SuiteConfig, read_suite
from ml.evaluation.retrieval.suite.methods import encoder_methods
from ml.evaluation.retrieval.suite.run import read_sets, run_suite
from ml.evaluation.retrieval.suite.table import score_table
from ml.reports.cards import update_card
from ml.types import Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that go with ``--suite``."""
    group = parser.add_argument_group("suite")
    group.add_argument(
        "--suite",
        nargs="?",
        const=Path(SHIPPED.name),
        type=Path,
        metavar="FILE",
        help="score over all sets of a suite file; without a file, or as suite.toml, the shipped",
    )
    group.add_argument(
        "--data", type=Path, help="folder that a suite's paths start from; else TESSERA_DATA"
    )
    group.add_argument("--draws", type=int, help="of the stain swap, instead of the suite file's")
    group.add_argument("--cache", type=Path, help="folder that keeps vectors (made if needed)")
    group.add_argument(
        "--expand", type=int, default=0, help="score encoders with expanded queries as well"
    )
    group.add_argument(
        "--choose", action="store_true", help="choose among several --encoder by the suite's rule"
    )


def run(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Score a suite by command line arguments.

    Raises:
        BadInputError: options, a suite file or data that cannot be scored.
    """
    config, data = _checked(args)
    encoders = encoder_methods(args.encoder or ["default"])
    if args.choose and len(encoders) < 2:
        raise BadInputError("--choose: expected two or more --encoder to choose among")
    if args.expand:
        more = [replace(m, name=f"{m.name}, expanded", expand=args.expand) for m in encoders]
        encoders = (*encoders, *more)
    sets = read_sets(config, data, progress)
    baselines = baseline_methods(
        config.training, data, seed=config.seed, cache=args.cache, progress=progress
    )
    result = run_suite(config, sets, (*encoders, *baselines), cache=args.cache, progress=progress)
    result = {"suite": args.suite.name, "choose": args.choose, **result}
    if args.card is not None:
        update_card(args.card, "suite", score_table(result))
    if args.plots is not None:
        from ml.evaluation.retrieval.suite.plots import write_plots

        result["plots"] = write_plots(args.plots, result)
    return result


def _checked(args: argparse.Namespace) -> tuple[SuiteConfig, Path]:
    """Refuse, before anything is computed, what would fail after hours."""
    if args.folder is not None:
        raise BadInputError("--suite names its sets itself: expected no folder beside it")
    config = read_suite(args.suite)
    if args.expand < 0:
        raise BadInputError(f"--expand: expected 0 or more, got {args.expand}")
    if args.draws is not None:
        if args.draws < 0:
            raise BadInputError(f"--draws: expected 0 or more, got {args.draws}")
        config = replace(config, draws=args.draws)
    folder = args.data or os.environ.get("TESSERA_DATA")
    if not folder:
        raise BadInputError("--suite: where is the data? Expected --data or TESSERA_DATA")
    if not Path(folder).is_dir():
        raise BadInputError(f"--data: {folder}: no such folder")
    if args.plots is not None:
        if importlib.util.find_spec("matplotlib") is None:
            raise BadInputError("--plots needs matplotlib: pip install 'tessera[plots]'")
        args.plots.mkdir(parents=True, exist_ok=True)
    if args.cache is not None:
        args.cache.mkdir(parents=True, exist_ok=True)
    return config, Path(folder)

"""``python -m ml evaluate retrieval``: an encoder and baselines, on one folder or on a suite."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ml.errors import BadInputError
from ml.evaluation.retrieval.manifest import parse_groups, read_manifest
from ml.evaluation.retrieval.protocols import RetrievalOptions
from ml.evaluation.retrieval.report import score_tables
from ml.evaluation.retrieval.scores import RetrievalScores, evaluate_retrieval
from ml.evaluation.retrieval.suite import command as suite
from ml.evaluation.retrieval.suite.table import describe as suite_tables
from ml.reports.cards import update_card
from ml.roi.load import load_graph_encoder
from ml.types import Progress


class RetrievalReport(RetrievalScores):
    """Scores of one folder."""

    data_set: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml evaluate retrieval``."""
    parser.add_argument("folder", type=Path, nargs="?", help="data set: a folder with rois.csv")
    parser.add_argument(
        "--encoder",
        action="append",
        help="name of an encoder, or a .safetensors file; several with --suite",
    )
    parser.add_argument(
        "--groups",
        nargs="+",
        default=[],
        metavar="NAME=LABEL,LABEL",
        help="score these coarser labels as well",
    )
    parser.add_argument("--ignore", nargs="+", default=[], metavar="LABEL", help="leave labels out")
    parser.add_argument("-k", type=int, default=10, help="number of results that mAP counts")
    parser.add_argument(
        "--bootstrap", type=int, default=1000, help="draws of the bootstrap for the intervals"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--card", type=Path, help="model card whose figures are replaced")
    parser.add_argument("--plots", type=Path, help="folder for the plots of a suite")
    suite.add_arguments(parser)


def run(args: argparse.Namespace, progress: Progress) -> RetrievalReport | suite.SuiteReport:
    """Score an encoder as given on the command line; see ``evaluate_retrieval`` and ``suite``."""
    if args.suite is not None:
        return suite.run(args, progress)
    _check(args)
    encoder = load_graph_encoder(args.encoder[0] if args.encoder else "default")
    records = tuple(r for r in read_manifest(args.folder) if r.label not in args.ignore)
    options = RetrievalOptions(k=args.k, bootstrap=args.bootstrap, seed=args.seed)
    scores = evaluate_retrieval(
        records,
        encoder,
        groups=parse_groups(args.groups),
        options=options,
        progress=progress,
    )
    # mypy cannot see that ``scores`` has none of the other keys.
    result = cast("RetrievalReport", {"data_set": Path(args.folder).resolve().name, **scores})
    if args.card is not None:
        update_card(args.card, result["data_set"], score_tables(result))
    return result


def describe(result: Mapping[str, Any]) -> str:
    """Markdown tables of the scores."""
    return suite_tables(result) if "suite" in result else score_tables(result)


def _check(args: argparse.Namespace) -> None:
    """Refuse bad options before anything is computed."""
    if args.folder is None:
        raise BadInputError("expected a folder with rois.csv, or --suite")
    if args.encoder and len(args.encoder) > 1:
        raise BadInputError("several --encoder: expected --suite with them")
    if args.k < 1 or args.bootstrap < 1:
        raise BadInputError("-k and --bootstrap: expected at least 1")
    if args.plots is not None:
        raise BadInputError("--plots: expected --suite with it")

"""``python -m ml evaluate retrieval``: an encoder beside its rivals, on one folder or on a suite.

See ``protocols`` for how ranked lists are scored.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from ml.errors import BadInputError
from ml.evaluation.retrieval.manifest import RoiRecord, parse_groups, read_manifest
from ml.evaluation.retrieval.protocols import RetrievalOptions
from ml.evaluation.retrieval.report import score_tables
from ml.evaluation.retrieval.scores import RetrievalScores, evaluate_retrieval
from ml.evaluation.retrieval.sections.pairs import (
    AdjacentScores,
    adjacent_sections,
    section_pairs,
)
from ml.evaluation.retrieval.stains.invariance import augmentation_invariance
from ml.evaluation.retrieval.suite import command as suite
from ml.evaluation.retrieval.suite.table import describe as suite_tables
from ml.extras import require_extra
from ml.reports.cards import update_card
from ml.roi import RoiEncoder, load_graph_encoder
from ml.types import ArrayF32, Progress


class Signals(TypedDict):
    """What an encoder is chosen by beside the scores; ``augmentation_invariance`` by change."""

    augmentation_invariance: dict[str, dict[str, float]]
    adjacent_sections: NotRequired[AdjacentScores]


class RetrievalReport(RetrievalScores):
    """The scores of one folder.

    Attributes:
        signals: what an encoder is chosen by beside the scores. plots: files written.
    """

    data_set: str
    signals: NotRequired[Signals]
    plots: NotRequired[list[str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml evaluate retrieval``."""
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
    parser.add_argument("--folds", type=int, help="score each of this many patient-disjoint folds")
    parser.add_argument(
        "--no-supervised",
        action="store_true",
        help="do not train the supervised network, to save time",
    )
    parser.add_argument(
        "--robustness",
        action="store_true",
        help="score also without stain normalisation, and with stain-shifted queries",
    )
    parser.add_argument(
        "--signals",
        action="store_true",
        help=(
            "score also the signals that an encoder is chosen by: stain shift, invariance, "
            "adjacent sections"
        ),
    )
    parser.add_argument("--sections", type=Path, help="folder of adjacent sections, for --signals")
    parser.add_argument("--plots", type=Path, help="folder for the plots (made if needed)")
    suite.add_arguments(parser)


def run(args: argparse.Namespace, progress: Progress) -> RetrievalReport | suite.SuiteReport:
    """Score by command line arguments; see ``evaluate_retrieval`` and ``suite``."""
    if args.suite is not None:
        return suite.run(args, progress)
    _check(args)
    encoder = load_graph_encoder(args.encoder[0] if args.encoder else "default")
    records = tuple(r for r in read_manifest(args.folder) if r.label not in args.ignore)
    options = RetrievalOptions(k=args.k, bootstrap=args.bootstrap, seed=args.seed)
    vectors: dict[str, ArrayF32] = {}
    scores = evaluate_retrieval(
        records,
        encoder,
        groups=parse_groups(args.groups),
        folds=args.folds,
        supervised=not args.no_supervised,
        robustness=args.robustness,
        stain_shift=args.signals,
        options=options,
        keep=vectors,
        progress=progress,
    )
    # Keys that a later line adds cannot be proved absent from what is unpacked.
    result = cast("RetrievalReport", {"data_set": Path(args.folder).resolve().name, **scores})
    if args.signals:
        result["signals"] = _signals(encoder, records, args.sections, options, progress)
    if args.plots is not None:
        from ml.evaluation.retrieval.plots.figures import write_plots

        result["plots"] = write_plots(args.plots, records, vectors, encoder.name, options)
    if args.card is not None:
        update_card(args.card, result["data_set"], score_tables(result))
    return result


def describe(result: Mapping[str, Any]) -> str:
    """The tables of the scores."""
    return suite_tables(result) if "suite" in result else score_tables(result)


def _check(args: argparse.Namespace) -> None:
    """Refuse, before anything is computed, what would fail after hours."""
    if args.folder is None:
        raise BadInputError("expected a folder with rois.csv, or --suite")
    if args.encoder and len(args.encoder) > 1:
        raise BadInputError("several --encoder: expected --suite with them")
    if args.k < 1 or args.bootstrap < 1:
        raise BadInputError("-k and --bootstrap: expected at least 1")
    if args.sections is not None and not args.signals:
        raise BadInputError("--sections needs --signals")
    if args.plots is not None:
        require_extra("matplotlib", extra="plots")
        args.plots.mkdir(parents=True, exist_ok=True)


def _signals(
    encoder: RoiEncoder,
    records: Sequence[RoiRecord],
    sections: Path | None,
    options: RetrievalOptions,
    progress: Progress,
) -> Signals:
    out: Signals = {
        "augmentation_invariance": augmentation_invariance(
            encoder, records, seed=options.seed, progress=progress
        )
    }
    if sections is not None:
        out["adjacent_sections"] = adjacent_sections(
            encoder, section_pairs(sections), progress=progress
        )
    return out

"""Retrieval of regions: against other patients, by the paper's protocol, and beside its rivals.

Against other patients: leave one out, regions of the query's own patient excluded; queries whose
label no other patient has cannot be scored and are counted. The paper's: query to gallery
1 : 4, same patient allowed, mean over random splits. Both give AP@K in two readings: normalised by
min(K, relevant), the one to quote, and by the hits among the K, which flatters.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from ml.errors import BadInputError
from ml.evaluation.retrieval.manifest import (
    RoiRecord,
    grouped,
    parse_groups,
    read_manifest,
    require_examples,
)
from ml.evaluation.retrieval.metrics import bootstrap_interval
from ml.evaluation.retrieval.protocols import (
    QueryScores,
    RetrievalOptions,
    other_folds,
    other_patients_scores,
    paper_scores,
)
from ml.evaluation.retrieval.report import score_tables
from ml.evaluation.retrieval.representations import representations
from ml.evaluation.retrieval.sections import adjacent_sections, section_pairs
from ml.evaluation.retrieval.signals import (
    augmentation_invariance,
    shifted_scores,
    shifted_vectors,
)
from ml.evaluation.retrieval.splits import Folds, SplitConfig, folds_report, split_patients
from ml.evaluation.retrieval.suite import command as suite
from ml.evaluation.retrieval.suite.table import describe as suite_tables
from ml.evaluation.retrieval.supervised import SUPERVISED, supervised_distances
from ml.extras import require_extra
from ml.reports.cards import update_card
from ml.roi import RoiEncoder, load_encoder
from ml.types import ArrayF32, ArrayF64, Progress, no_progress

_RANDOM_RUNS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml evaluate retrieval``."""
    parser.add_argument("folder", type=Path, nargs="?", help="data set: a folder with rois.csv")
    parser.add_argument(
        "--encoder",
        action="append",
        help="name of an encoder, or a .safetensors file; several with --suite",
    )
    parser.add_argument(
        "--groups", nargs="+", default=[], metavar="NAME=LABEL,LABEL", help="score these as well"
    )
    parser.add_argument("--ignore", nargs="+", default=[], metavar="LABEL", help="leave labels out")
    parser.add_argument("-k", type=int, default=10, help="length of the list mAP counts")
    parser.add_argument("--bootstrap", type=int, default=1000, help="draws of the intervals")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--card", type=Path, help="model card whose figures are replaced")
    parser.add_argument("--folds", type=int, help="score each of so many patient-disjoint folds")
    parser.add_argument(
        "--no-supervised",
        action="store_true",
        help="do not train the supervised network, to save time",
    )
    parser.add_argument(
        "--robustness",
        action="store_true",
        help="also without stain normalisation, and with stain-shifted queries",
    )
    parser.add_argument(
        "--signals",
        action="store_true",
        help="also what an encoder is chosen by: stain shift, invariance, adjacent sections",
    )
    parser.add_argument("--sections", type=Path, help="folder of adjacent sections, for --signals")
    parser.add_argument("--plots", type=Path, help="folder for the plots (made if needed)")
    suite.add_arguments(parser)


def run(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Score by command line arguments; see ``evaluate_retrieval`` and ``suite``."""
    if args.suite is not None:
        return suite.run(args, progress)
    _check(args)
    encoder = load_encoder(args.encoder[0] if args.encoder else "default")
    records = tuple(r for r in read_manifest(args.folder) if r.label not in args.ignore)
    options = RetrievalOptions(k=args.k, bootstrap=args.bootstrap, seed=args.seed)
    vectors: dict[str, ArrayF32] = {}
    result = evaluate_retrieval(
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
    result = {"data_set": Path(args.folder).resolve().name, **result}
    if args.signals:
        result["signals"] = _signals(encoder, records, args.sections, options, progress)
    if args.plots is not None:
        from ml.evaluation.retrieval.plots import write_plots

        result["plots"] = write_plots(args.plots, records, vectors, encoder.name, options)
    if args.card is not None:
        update_card(args.card, result["data_set"], score_tables(result))
    return result


def describe(result: dict[str, Any]) -> str:
    """The tables of the scores."""
    return suite_tables(result) if "suite" in result else score_tables(result)


def evaluate_retrieval(
    records: Sequence[RoiRecord],
    encoder: RoiEncoder,
    *,
    groups: dict[str, tuple[str, ...]] | None = None,
    folds: int | None = None,
    supervised: bool = False,
    robustness: bool = False,
    stain_shift: bool = False,
    options: RetrievalOptions | None = None,
    keep: dict[str, ArrayF32] | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Score an encoder and the baselines on the same regions in the same run.

    Args:
        records: regions with labels and patients.
        groups: coarser labels to score as well, see ``grouped``.
        folds: score each of so many patient-disjoint folds against the others, too.
        supervised: train the supervised graph network on the same regions as well, cross-fitted.
        robustness: also without stain normalisation and with stain-shifted queries.
        stain_shift: with stain-shifted queries alone.
        keep: filled with the vectors of each method, for plots.
    Returns:
        Plain data: encoder, regions, and for "labels" (and "groups") each protocol's table of
        methods. Intervals are 95 % over patients.
    Raises:
        BadInputError: a label with one example, or one that no group holds; a region without
            tissue; more folds than patients.
    """
    options = options or RetrievalOptions()
    tasks = {"labels": tuple(records)}
    if groups:
        tasks["groups"] = grouped(records, groups)
    for task in tasks.values():
        require_examples(task)
    config = SplitConfig(folds=folds, seed=options.seed) if folds else None
    dealt = split_patients(records, config) if config else None
    found = representations(
        records, encoder, seed=options.seed, without_stain=robustness, progress=progress
    )
    if keep is not None:
        keep.update(found.vectors)
    trained = (
        supervised_distances(tasks, encoder, seed=options.seed, progress=progress)
        if supervised
        else {}
    )
    result = {
        "encoder": {
            "name": encoder.name,
            "version": encoder.version,
            "config_hash": encoder.config_hash,
            "dim": encoder.dim,
        },
        "options": {
            "k": options.k,
            "long_k": options.long_k,
            "vote_k": options.vote_k,
            "seed": options.seed,
        },
        "n_regions": len(records),
        "n_patients": len({record.patient for record in records}),
        "seconds_per_region": found.seconds,
        **{
            name: _score_task(task, found.vectors, trained.get(name), options)
            for name, task in tasks.items()
        },
    }
    if dealt is not None and config is not None:
        result["folds"] = _score_folds(records, found.vectors, dealt, config, options)
    if robustness or stain_shift:
        shifted = shifted_vectors(encoder, records, seed=options.seed, progress=progress)
        result["stain_shift"] = {
            name: shifted_scores(shifted, task, options) for name, task in tasks.items()
        }
    return result


def _check(args: argparse.Namespace) -> None:
    """Refuse, before anything is computed, what would fail after hours."""
    if args.folder is None:
        raise BadInputError("expected a folder with rois.csv, or --suite")
    if args.encoder and len(args.encoder) > 1:
        raise BadInputError("several --encoder: expected --suite with them")
    if args.k < 1 or args.bootstrap < 1:
        raise BadInputError("-k and --bootstrap: expected at least 1")
    if args.sections is not None and not args.signals:
        raise BadInputError("--sections belongs to --signals")
    if args.plots is not None:
        require_extra("matplotlib", extra="plots")
        args.plots.mkdir(parents=True, exist_ok=True)


def _signals(
    encoder: RoiEncoder,
    records: Sequence[RoiRecord],
    sections: Path | None,
    options: RetrievalOptions,
    progress: Progress,
) -> dict[str, Any]:
    out: dict[str, Any] = {
        "augmentation_invariance": augmentation_invariance(
            encoder, records, seed=options.seed, progress=progress
        )
    }
    if sections is not None:
        out["adjacent_sections"] = adjacent_sections(
            encoder, section_pairs(sections), progress=progress
        )
    return out


def _score_folds(
    records: Sequence[RoiRecord],
    vectors: dict[str, ArrayF32],
    folds: Folds,
    config: SplitConfig,
    options: RetrievalOptions,
) -> dict[str, Any]:
    scores: dict[str, list[float | None]] = {}
    for name, v in vectors.items():
        rows = other_folds(cdist(v, v).astype(np.float64), records, folds, options)
        scores[name] = [None if row is None else float(row.ap.mean()) for row in rows]
    return {**folds_report(folds, config), "map_by_fold": scores}


def _score_task(
    records: Sequence[RoiRecord],
    vectors: dict[str, ArrayF32],
    supervised: ArrayF64 | None,
    options: RetrievalOptions,
) -> dict[str, Any]:
    distances = {name: cdist(v, v).astype(np.float64) for name, v in vectors.items()}
    if supervised is not None:
        distances[SUPERVISED] = supervised
    out: dict[str, Any] = {}
    for protocol, score in (
        ("other_patients", other_patients_scores),
        ("paper_split", paper_scores),
    ):
        table = {
            name: _summary(score(d, records, options), options) for name, d in distances.items()
        }
        out[protocol] = {"chance": _chance(records, score, options), **table}
    scored = other_patients_scores(next(iter(distances.values())), records, options)
    out["n_queries_scored"] = len(scored.labels)
    out["n_queries_without_relevant"] = len(records) - len(scored.labels)
    return out


def _chance(records: Sequence[RoiRecord], score: Any, options: RetrievalOptions) -> dict[str, Any]:
    rng = np.random.default_rng(options.seed)
    runs = []
    for _ in range(_RANDOM_RUNS):
        result = score(rng.random((len(records), len(records))), records, options)
        runs.append(
            [
                result.ap.mean(),
                result.ap_long.mean(),
                result.ap_by_hits.mean(),
                result.precision.mean(),
                result.vote_right.mean(),
            ]
        )
    names = ("map", "map_long", "map_by_hits", "precision", "vote_accuracy")
    return {name: float(v) for name, v in zip(names, np.mean(runs, axis=0), strict=True)}


def _summary(scores: QueryScores, options: RetrievalOptions) -> dict[str, Any]:
    labels = np.array(scores.labels)
    interval = bootstrap_interval(
        scores.ap, scores.patients, repeats=options.bootstrap, seed=options.seed
    )
    return {
        "map": float(scores.ap.mean()),
        "map_interval": interval,
        "map_long": float(scores.ap_long.mean()),
        "map_by_hits": float(scores.ap_by_hits.mean()),
        "precision": float(scores.precision.mean()),
        "vote_accuracy": float(scores.vote_right.mean()),
        "by_label": {
            str(label): {
                "queries": int((labels == label).sum()),
                "map": float(scores.ap[labels == label].mean()),
                "precision": float(scores.precision[labels == label].mean()),
                "vote_accuracy": float(scores.vote_right[labels == label].mean()),
            }
            for label in np.unique(labels)
        },
    }

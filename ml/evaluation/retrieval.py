"""Retrieval of regions: the honest protocol, the paper's, and what the encoder has to beat.

Honest: leave one out, regions of the query's own patient excluded; queries whose label no other
patient has cannot be scored and are counted. Paper: query to gallery 1 : 4, same patient allowed,
mean over random splits. Both give AP@K in two readings: normalised by min(K, relevant), the one to
quote, and by the hits among the K, which flatters.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from ml.errors import BadInputError
from ml.evaluation.metrics import bootstrap_interval
from ml.evaluation.retrieval_baselines import (
    bags_of_words,
    hsv_histogram,
    region_pixels,
    sift_descriptors,
)
from ml.evaluation.retrieval_manifest import (
    RoiRecord,
    grouped,
    parse_groups,
    read_manifest,
    require_examples,
)
from ml.evaluation.retrieval_protocols import (
    QueryScores,
    RetrievalOptions,
    honest_scores,
    paper_scores,
)
from ml.evaluation.retrieval_report import score_tables, update_card
from ml.imaging.slides import open_slide
from ml.roi import RoiEncoder, encoder_from_file, load_encoder
from ml.types import ArrayF32, Progress, no_progress

_RANDOM_RUNS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml evaluate retrieval``."""
    parser.add_argument("folder", type=Path, help="data set: a folder with rois.csv")
    parser.add_argument(
        "--encoder", default="default", help="name of an encoder, or a .safetensors file"
    )
    parser.add_argument(
        "--groups", nargs="+", default=[], metavar="NAME=LABEL,LABEL", help="score these as well"
    )
    parser.add_argument("--ignore", nargs="+", default=[], metavar="LABEL", help="leave labels out")
    parser.add_argument("-k", type=int, default=10, help="length of the list mAP counts")
    parser.add_argument("--bootstrap", type=int, default=1000, help="draws of the intervals")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--card", type=Path, help="model card whose figures are replaced")


def run(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Score by command line arguments; see ``evaluate_retrieval``."""
    if args.k < 1 or args.bootstrap < 1:
        raise BadInputError("-k and --bootstrap: expected at least 1")
    is_file = str(args.encoder).endswith(".safetensors")
    encoder = encoder_from_file(args.encoder) if is_file else load_encoder(args.encoder)
    records = tuple(r for r in read_manifest(args.folder) if r.label not in args.ignore)
    options = RetrievalOptions(k=args.k, bootstrap=args.bootstrap, seed=args.seed)
    result = evaluate_retrieval(
        records, encoder, groups=parse_groups(args.groups), options=options, progress=progress
    )
    result = {"data_set": Path(args.folder).resolve().name, **result}
    if args.card is not None:
        update_card(args.card, result)
    return result


def describe(result: dict[str, Any]) -> str:
    """The tables of the scores."""
    return score_tables(result)


def evaluate_retrieval(
    records: Sequence[RoiRecord],
    encoder: RoiEncoder,
    *,
    groups: dict[str, tuple[str, ...]] | None = None,
    options: RetrievalOptions | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Score an encoder and the baselines on the same regions in the same run.

    Args:
        records: regions with labels and patients.
        groups: coarser labels to score as well, see ``grouped``.
    Returns:
        Plain data: encoder, regions, and for "labels" (and "groups") each protocol's table of
        methods. Intervals are 95 % over patients.
    Raises:
        BadInputError: a label with one example, or one that no group holds.
    """
    options = options or RetrievalOptions()
    tasks = {"labels": tuple(records)}
    if groups:
        tasks["groups"] = grouped(records, groups)
    for task in tasks.values():
        require_examples(task)
    vectors, seconds = _representations(records, encoder, options.seed, progress)
    return {
        "encoder": {
            "name": encoder.name,
            "version": encoder.version,
            "config_hash": encoder.config_hash,
            "dim": encoder.dim,
        },
        "options": {"k": options.k, "vote_k": options.vote_k, "seed": options.seed},
        "n_regions": len(records),
        "n_patients": len({record.patient for record in records}),
        "seconds_per_region": seconds,
        **{name: _score_task(task, vectors, options) for name, task in tasks.items()},
    }


def _score_task(
    records: Sequence[RoiRecord], vectors: dict[str, ArrayF32], options: RetrievalOptions
) -> dict[str, Any]:
    distances = {name: cdist(v, v).astype(np.float64) for name, v in vectors.items()}
    out: dict[str, Any] = {}
    for protocol, score in (("other_patients", honest_scores), ("paper_split", paper_scores)):
        table = {
            name: _summary(score(d, records, options), options) for name, d in distances.items()
        }
        out[protocol] = {"chance": _chance(records, score, options), **table}
    scored = honest_scores(next(iter(distances.values())), records, options)
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
                result.ap_by_hits.mean(),
                result.precision.mean(),
                result.vote_right.mean(),
            ]
        )
    names = ("map", "map_by_hits", "precision", "vote_accuracy")
    return {name: float(v) for name, v in zip(names, np.mean(runs, axis=0), strict=True)}


def _summary(scores: QueryScores, options: RetrievalOptions) -> dict[str, Any]:
    labels = np.array(scores.labels)
    interval = bootstrap_interval(
        scores.ap, scores.patients, repeats=options.bootstrap, seed=options.seed
    )
    return {
        "map": float(scores.ap.mean()),
        "map_interval": interval,
        "map_by_hits": float(scores.ap_by_hits.mean()),
        "precision": float(scores.precision.mean()),
        "vote_accuracy": float(scores.vote_right.mean()),
        "map_by_label": {
            str(label): float(scores.ap[labels == label].mean()) for label in np.unique(labels)
        },
    }


def _representations(
    records: Sequence[RoiRecord], encoder: RoiEncoder, seed: int, progress: Progress
) -> tuple[dict[str, ArrayF32], float]:
    """Vectors (N, D) by method, and the encoder's mean seconds a region."""
    learned, colours, descriptors, seconds = [], [], [], []
    for done, record in enumerate(records, 1):
        with open_slide(record.image) as slide:
            embedded = encoder.embed_region(slide, record.geometry, mpp=record.mpp)
        learned.append(embedded.vector)
        seconds.append(embedded.seconds)
        pixels, mask = region_pixels(record)
        colours.append(hsv_histogram(pixels, mask))
        descriptors.append(sift_descriptors(pixels, mask))
        progress(done, len(records), "regions")
    vectors = np.stack(learned)
    return {
        encoder.name: vectors,
        "vertex_mean": vectors[:, : encoder.config.network.vertex_dim],
        "hsv_histogram": np.stack(colours),
        "bag_of_sift": bags_of_words(descriptors, seed=seed),
    }, float(np.mean(seconds))

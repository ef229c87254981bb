"""Scores of one encoder and of baselines on the same regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import numpy as np
from scipy.spatial.distance import cdist

from ml.errors import BadInputError, EmptyRegionError, InvalidGeometryError
from ml.evaluation.retrieval.baselines import bag_of_words, root_sift, visual_words
from ml.evaluation.retrieval.manifest import RoiRecord, grouped, require_examples
from ml.evaluation.retrieval.metrics import RANDOM_RUNS, bootstrap_interval
from ml.evaluation.retrieval.protocols import (
    QueryScores,
    RetrievalOptions,
    other_patients_scores,
)
from ml.evaluation.retrieval.regions import region_image
from ml.evaluation.retrieval.suite.baselines import (
    HSV,
    LBP,
    SIFT,
    SiftConfig,
    at_target,
    hsv_vector,
    lbp_vector,
)
from ml.imaging.slides.slide import open_slide
from ml.roi.embed import RoiEncoder
from ml.types import ArrayF32, ArrayF64, Progress, no_progress


class LabelScores(TypedDict):
    """Means over the queries of one label."""

    queries: int
    map: float
    precision: float
    vote_accuracy: float


class MethodScores(TypedDict):
    """Means over all queries; chance has no ``NotRequired`` keys."""

    map: float
    map_interval: NotRequired[tuple[float, float]]
    map_long: float
    map_by_hits: float
    precision: float
    vote_accuracy: float
    by_label: NotRequired[dict[str, LabelScores]]


class TaskScores(TypedDict):
    """Scores under one set of labels, by method, ``chance`` among the methods."""

    other_patients: dict[str, MethodScores]
    n_queries_scored: int
    n_queries_without_relevant: int


class EncoderIdentity(TypedDict):
    """Identity of the scored encoder."""

    name: str
    version: str
    config_hash: str
    dim: int


class RetrievalScores(TypedDict):
    """Result of ``evaluate_retrieval``; intervals are 95 % over patients."""

    encoder: EncoderIdentity
    options: dict[str, int]
    n_regions: int
    n_patients: int
    seconds_per_region: float
    labels: TaskScores
    groups: NotRequired[TaskScores]


def evaluate_retrieval(
    records: Sequence[RoiRecord],
    encoder: RoiEncoder,
    *,
    groups: dict[str, tuple[str, ...]] | None = None,
    options: RetrievalOptions | None = None,
    progress: Progress = no_progress,
) -> RetrievalScores:
    """Score an encoder and the baselines on the same regions.

    Args:
        records: regions with labels and patients.
        groups: coarser labels to score as well, see ``grouped``.
    Raises:
        BadInputError: a label with one example, or one that no group holds; a region without
            tissue.
    """
    options = options or RetrievalOptions()
    tasks = {"labels": tuple(records)}
    if groups:
        tasks["groups"] = grouped(records, groups)
    for task in tasks.values():
        require_examples(task)
    vectors, seconds = _vectors(records, encoder, seed=options.seed, progress=progress)
    scored = {name: _score_task(task, vectors, options) for name, task in tasks.items()}
    result: RetrievalScores = {
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
        "seconds_per_region": seconds,
        "labels": scored["labels"],
    }
    if "groups" in scored:
        result["groups"] = scored["groups"]
    return result


def _vectors(
    records: Sequence[RoiRecord], encoder: RoiEncoder, *, seed: int, progress: Progress
) -> tuple[dict[str, ArrayF32], float]:
    """Compute the vectors of all regions by each method, the encoder first.

    SIFT's visual words are clusters of the descriptors of the same regions.

    Returns:
        Vectors (N, D) float32 by method; mean seconds a region of the encoder.
    """
    sift = SiftConfig()
    learned, seconds, colours, patterns, descriptors = [], [], [], [], []
    for number, record in enumerate(records, 1):
        with open_slide(record.image) as slide:
            try:
                embedded = encoder.embed_region(slide, record.geometry, mpp=record.mpp)
            except (EmptyRegionError, InvalidGeometryError) as error:
                raise BadInputError(f"{record.image.name}: {error}") from error
        learned.append(embedded.vector)
        seconds.append(embedded.seconds)
        region = region_image(record)
        colours.append(hsv_vector(region))
        patterns.append(lbp_vector(region))
        descriptors.append(root_sift(*at_target(region), contrast=sift.contrast))
        progress(number, len(records), "regions")
    words = visual_words(np.concatenate(descriptors), count=sift.words, seed=seed)
    vectors = {
        encoder.name: np.stack(learned),
        HSV: np.stack(colours),
        LBP: np.stack(patterns),
        SIFT: np.stack([bag_of_words(rows, words) for rows in descriptors]),
    }
    return vectors, float(np.mean(seconds))


def _score_task(
    records: Sequence[RoiRecord],
    vectors: dict[str, ArrayF32],
    options: RetrievalOptions,
) -> TaskScores:
    distances = {name: cdist(v, v).astype(np.float64) for name, v in vectors.items()}
    scored = other_patients_scores(next(iter(distances.values())), records, options)
    return {
        "other_patients": _table(distances, records, options),
        "n_queries_scored": len(scored.labels),
        "n_queries_without_relevant": len(records) - len(scored.labels),
    }


def _table(
    distances: dict[str, ArrayF64],
    records: Sequence[RoiRecord],
    options: RetrievalOptions,
) -> dict[str, MethodScores]:
    table = {"chance": _chance(records, options)}
    for name, distance in distances.items():
        table[name] = _summary(other_patients_scores(distance, records, options), options)
    return table


def _chance(records: Sequence[RoiRecord], options: RetrievalOptions) -> MethodScores:
    rng = np.random.default_rng(options.seed)
    shape = (len(records), len(records))
    runs = [
        _means(other_patients_scores(rng.random(shape), records, options))
        for _ in range(RANDOM_RUNS)
    ]
    map_, map_long, by_hits, precision, vote = np.mean(runs, axis=0).tolist()
    return {
        "map": map_,
        "map_long": map_long,
        "map_by_hits": by_hits,
        "precision": precision,
        "vote_accuracy": vote,
    }


def _means(scores: QueryScores) -> list[float]:
    measures = (scores.ap, scores.ap_long, scores.ap_by_hits, scores.precision, scores.vote_right)
    return [float(values.mean()) for values in measures]


def _summary(scores: QueryScores, options: RetrievalOptions) -> MethodScores:
    map_, map_long, by_hits, precision, vote = _means(scores)
    return {
        "map": map_,
        "map_interval": bootstrap_interval(
            scores.ap, scores.patients, repeats=options.bootstrap, seed=options.seed
        ),
        "map_long": map_long,
        "map_by_hits": by_hits,
        "precision": precision,
        "vote_accuracy": vote,
        "by_label": {
            str(label): _label_scores(scores, label) for label in np.unique(np.array(scores.labels))
        },
    }


def _label_scores(scores: QueryScores, label: str) -> LabelScores:
    rows = np.array(scores.labels) == label
    return {
        "queries": int(rows.sum()),
        "map": float(scores.ap[rows].mean()),
        "precision": float(scores.precision[rows].mean()),
        "vote_accuracy": float(scores.vote_right[rows].mean()),
    }

"""Scores of one method over scenes, near and far."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ml.evaluation.retrieval.closeness import CalledClose, drawn, is_close
from ml.evaluation.retrieval.metrics import average_precision_at_k, bootstrap_interval
from ml.evaluation.retrieval.places.scenes import Scene
from ml.index.ranking.calibration import Calibration
from ml.types import ArrayBool, ArrayF32, ArrayI64

K = 10
"""Number of results that count."""
DISTANCES = ("near", "far")


@dataclass(frozen=True, slots=True)
class PlaceScore:
    """Scores of one truth ("sweep", "kinds" or "sfm") at one distance.

    Attributes:
        score: mean average precision of the first ten.
        low, high: 95 % interval, places resampled.
        chance: expected score of a random order.
        queries: regions with the same place in their gallery.
    """

    score: float
    low: float
    high: float
    chance: float
    queries: int


@dataclass(frozen=True, slots=True)
class PlaceQuery:
    """One search.

    Attributes:
        scene: number of the scene.
        index: of the region that is searched for.
        gallery: (M,) int64 regions it is searched among.
        same: (M,) bool, which show its place.
    """

    scene: int
    index: int
    gallery: ArrayI64
    same: ArrayBool


def queries(scenes: Sequence[Scene], truth: str, distance: str) -> Iterator[PlaceQuery]:
    """Queries of all regions whose gallery holds their place and another one."""
    for number, scene in enumerate(scenes):
        if scene.truth != truth:
            continue
        place = np.array([region.place for region in scene.regions])
        for index in range(len(place)):
            gallery = scene.gallery(index, distance)
            same = place[gallery] == place[index]
            if same.any() and not same.all():
                yield PlaceQuery(number, index, gallery, same)


def score_vectors(
    scenes: Sequence[Scene], vectors: Sequence[ArrayF32]
) -> dict[tuple[str, str], PlaceScore]:
    """Scores by (truth, distance) of the vectors (N, D) of each scene's regions."""
    by_truth: dict[tuple[str, str], PlaceScore] = {}
    for truth in sorted({scene.truth for scene in scenes}):
        for distance in DISTANCES:
            found_queries = list(queries(scenes, truth, distance))
            if not found_queries:
                continue
            values = [
                ranked_score(query, nearest(vectors[query.scene], query)) for query in found_queries
            ]
            by_truth[truth, distance] = summed(scenes, found_queries, values)
    return by_truth


def nearest(vectors: ArrayF32, query: PlaceQuery) -> ArrayI64:
    """(M,) int64 order of the gallery by Euclidean distance, ties by index."""
    differences = vectors[query.gallery] - vectors[query.index]
    distance = np.linalg.norm(np.nan_to_num(differences, nan=np.inf), axis=1)
    return np.argsort(distance, kind="stable").astype(np.int64)


def ranked_score(query: PlaceQuery, order: ArrayI64) -> float:
    """Average precision of the first ten of an order of the gallery."""
    return average_precision_at_k(
        np.asarray(query.same[order], np.bool_), k=K, n_relevant=int(query.same.sum())
    )


def summed(
    scenes: Sequence[Scene], found_queries: Sequence[PlaceQuery], values: Sequence[float]
) -> PlaceScore:
    """Mean and interval over queries, places resampled as groups."""
    groups = [
        f"{scenes[query.scene].name}/{scenes[query.scene].regions[query.index].place}"
        for query in found_queries
    ]
    low, high = bootstrap_interval(np.array(values), groups)
    return PlaceScore(
        score=float(np.mean(values)),
        low=low,
        high=high,
        chance=float(np.mean([_chance(query) for query in found_queries])),
        queries=len(found_queries),
    )


def called_close(
    scenes: Sequence[Scene], vectors: Sequence[ArrayF32], calibration: Calibration
) -> dict[str, dict[str, CalledClose]]:
    """Shares of close hits by truth and distance; recordings of other operations are unrelated."""
    operation = [scene.name.split("-", 1)[0] for scene in scenes]
    nested: dict[str, dict[str, CalledClose]] = defaultdict(dict)
    for truth in sorted({scene.truth for scene in scenes}):
        for distance in DISTANCES:
            related, unrelated = [], []
            for query in queries(scenes, truth, distance):
                scene_vectors = vectors[query.scene]
                gallery = np.concatenate(
                    [
                        v
                        for v, o in zip(vectors, operation, strict=True)
                        if o != operation[query.scene]
                    ]
                    or [np.zeros((0, scene_vectors.shape[1]), np.float32)]
                )
                gallery = drawn(gallery, len(query.gallery), query.scene, query.index)
                vector, same = scene_vectors[query.index], scene_vectors[query.gallery[query.same]]
                related.append(is_close(vector, same, len(query.gallery), calibration))
                unrelated.append(is_close(vector, gallery, len(gallery), calibration))
            if related:
                nested[truth][distance] = CalledClose(
                    float(np.mean(related)), float(np.mean(unrelated))
                )
    return dict(nested)


def _chance(query: PlaceQuery) -> float:
    """Expected score of a random order: the mean of 200 orders."""
    rng = np.random.default_rng(query.index)
    count = len(query.gallery)
    return float(np.mean([ranked_score(query, rng.permutation(count)) for _ in range(200)]))


def by_truth(scores: dict[tuple[str, str], PlaceScore]) -> dict[str, dict[str, PlaceScore]]:
    """Scores as nested mappings."""
    nested: dict[str, dict[str, PlaceScore]] = defaultdict(dict)
    for (truth, distance), score in scores.items():
        nested[truth][distance] = score
    return dict(nested)

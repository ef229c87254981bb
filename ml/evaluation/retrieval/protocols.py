"""Retrieval against other patients.

Leave one out, without regions of the query's own patient; queries whose label no other patient has
are not scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ml.errors import BadInputError
from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.metrics import (
    average_precision_at_k,
    average_precision_by_hits,
    majority_vote,
    precision_at_k,
)
from ml.types import ArrayF64, ArrayI64


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """Options of scoring."""

    k: int = 10  # results that mAP counts
    long_k: int = 25  # results of the longer list, which mAP is also given for
    vote_k: int = 5  # results that precision and the vote count
    bootstrap: int = 1000  # draws of the intervals
    seed: int = 0  # of random rankings, vocabularies and draws


@dataclass(frozen=True, slots=True)
class QueryScores:
    """One row per scored query."""

    ap: ArrayF64
    ap_long: ArrayF64
    ap_by_hits: ArrayF64
    precision: ArrayF64
    vote_right: ArrayF64
    labels: tuple[str, ...]
    patients: tuple[str, ...]


def other_patients_scores(
    distance: ArrayF64, records: Sequence[RoiRecord], options: RetrievalOptions
) -> QueryScores:
    """Score by leave one out, without the query's own patient in the gallery.

    Args:
        distance: (N, N) between all regions.
    """
    return _scores(distance, records, other_patients(records), options)


def other_patients(records: Sequence[RoiRecord]) -> list[tuple[int, ArrayI64]]:
    """Each region as query, with the regions of all other patients as gallery."""
    patients = np.array([record.patient for record in records])
    everyone = np.arange(len(records))
    return [(int(query), everyone[patients != patients[query]]) for query in everyone]


def _scores(
    distance: ArrayF64,
    records: Sequence[RoiRecord],
    pairs: Sequence[tuple[Any, ArrayI64]],
    options: RetrievalOptions,
) -> QueryScores:
    labels = np.array([record.label for record in records])
    rows: list[tuple[float, ...]] = []
    used: list[int] = []
    for query, gallery in pairs:
        relevant = labels[gallery] == labels[query]
        if not relevant.any():
            continue
        order = np.argsort(distance[query, gallery], kind="stable")
        ranked, top = relevant[order], labels[gallery[order[: options.vote_k]]]
        ap = average_precision_at_k(ranked, k=options.k, n_relevant=int(relevant.sum()))
        ap_long = average_precision_at_k(ranked, k=options.long_k, n_relevant=int(relevant.sum()))
        by_hits = average_precision_by_hits(ranked, k=options.k)
        precision = precision_at_k(ranked, k=options.vote_k)
        vote_right = float(majority_vote(top.tolist()) == labels[query])
        rows.append((ap, ap_long, by_hits, precision, vote_right))
        used.append(int(query))
    if not rows:
        raise BadInputError(
            "no query has a relevant region of another patient, so there is nothing to score"
        )
    table = np.array(rows, np.float64)
    return QueryScores(
        ap=table[:, 0],
        ap_long=table[:, 1],
        ap_by_hits=table[:, 2],
        precision=table[:, 3],
        vote_right=table[:, 4],
        labels=tuple(records[i].label for i in used),
        patients=tuple(records[i].patient for i in used),
    )

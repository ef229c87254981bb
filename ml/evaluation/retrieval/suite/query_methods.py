"""Query methods over the same vectors: expansion, diffusion, a learned metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from ml.errors import BadInputError
from ml.evaluation.retrieval.suite.sets import SuiteQuery, Task
from ml.index.metric_learning.metric import LearnedMetric, learn_metric
from ml.index.ranking.diffusion import DiffusionConfig, diffused_distances
from ml.index.ranking.expansion import expanded_query
from ml.types import ArrayF32, ArrayF64


@dataclass(frozen=True, slots=True)
class QueryMethod:
    """A query method; by default Euclidean distance.

    Attributes:
        expand: number of neighbours of ``expanded_query``; 0 for none.
        diffuse: whether to use ``diffused_distances``, after an expansion if there is one.
        diffusion: configuration; None for the default.
        direct_expanded: whether the direct share of diffusion is that of the expanded query instead
            of that of the region.
        learn: whether to use a metric learned from the labels of other patients, where a set has
            labels and patients; see ``learn_metric``.
    """

    expand: int = 0
    diffuse: bool = False
    learn: bool = False
    diffusion: DiffusionConfig | None = None
    direct_expanded: bool = False


BY_DISTANCE = QueryMethod()


def distances_of(
    task: Task, queries: ArrayF32, gallery: ArrayF32, query_method: QueryMethod
) -> Callable[[SuiteQuery], ArrayF64]:
    """Function from a query to the distances of its gallery.

    Args:
        queries, gallery: (N, D) vectors of all items, as queries and as members of galleries.
    """
    learned: dict[str, LearnedMetric | None] = {}

    def distances(query: SuiteQuery) -> ArrayF64:
        vector, candidates = queries[query.item][None], gallery[query.gallery]
        if query_method.learn and task.labels:
            if query.group not in learned:
                learned[query.group] = _learn_metric(task, query, candidates)
            metric = learned[query.group]
            if metric is not None:
                vector, candidates = metric.apply(vector), metric.apply(candidates)
        return _distances(vector[0].astype(np.float64), candidates.astype(np.float64), query_method)

    return distances


def _learn_metric(task: Task, query: SuiteQuery, candidates: ArrayF32) -> LearnedMetric | None:
    """Metric learned from a query's gallery; None if it has too few labels or patients."""
    labels = [task.labels[item] for item in query.gallery]
    patients = [task.patients[item] for item in query.gallery]
    try:
        return learn_metric(candidates, labels, patients)
    except BadInputError:
        return None


def _distances(query: ArrayF64, gallery: ArrayF64, query_method: QueryMethod) -> ArrayF64:
    expanded = query
    if query_method.expand:
        nearest = np.argsort(cdist(query[None], gallery)[0], kind="stable")[: query_method.expand]
        expanded = expanded_query(query, gallery[nearest])
    if not query_method.diffuse:
        return cdist(expanded[None], gallery)[0]
    direct = expanded if query_method.direct_expanded else query
    return diffused_distances(direct, gallery, query_method.diffusion, expanded=expanded)

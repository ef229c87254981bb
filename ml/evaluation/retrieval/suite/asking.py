"""Better answers from the same vectors: ways to ask a gallery, each a row of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from ml.errors import BadInputError
from ml.evaluation.retrieval.suite.sets import SuiteQuery, Task
from ml.index.answers.diffusion import diffused_distances
from ml.index.answers.expansion import expanded_query
from ml.index.learning.metric import LearnedMetric, learn_metric
from ml.types import ArrayF32, ArrayF64


@dataclass(frozen=True, slots=True)
class Asking:
    """How a query is asked; by default by the distance of its vector.

    An expanded query may be diffused as well, as in the portal.

    Attributes:
        expand: neighbours that a query is expanded by, see ``expanded_query``.
        diffuse: by diffusion over the gallery, see ``diffused_distances``.
        learn: under a metric learned from the labels of the gallery, see ``learn_metric``. The
            query's patient is not in it. Sets without labels and patients are asked plainly.
    """

    expand: int = 0
    diffuse: bool = False
    learn: bool = False


PLAINLY = Asking()


def asker(
    task: Task, queries: ArrayF32, gallery: ArrayF32, asking: Asking
) -> Callable[[SuiteQuery], ArrayF64]:
    """Distances of a query's gallery to it.

    Args:
        queries, gallery: (N, D) vectors of all items: of those that ask, and of those found.
    """
    learned: dict[str, LearnedMetric | None] = {}

    def ask(query: SuiteQuery) -> ArrayF64:
        vector, found = queries[query.item][None], gallery[query.gallery]
        if asking.learn and task.labels:
            if query.group not in learned:
                learned[query.group] = _learned(task, query, found)
            metric = learned[query.group]
            if metric is not None:
                vector, found = metric.apply(vector), metric.apply(found)
        return _distances(vector[0].astype(np.float64), found.astype(np.float64), asking)

    return ask


def _learned(task: Task, query: SuiteQuery, found: ArrayF32) -> LearnedMetric | None:
    """None if the others have too few labels or patients to learn from."""
    labels = [task.labels[item] for item in query.gallery]
    patients = [task.patients[item] for item in query.gallery]
    try:
        return learn_metric(found, labels, patients)
    except BadInputError:
        return None


def _distances(query: ArrayF64, gallery: ArrayF64, asking: Asking) -> ArrayF64:
    if asking.expand:
        nearest = np.argsort(cdist(query[None], gallery)[0], kind="stable")[: asking.expand]
        query = expanded_query(query, gallery[nearest])
    return diffused_distances(query, gallery) if asking.diffuse else cdist(query[None], gallery)[0]

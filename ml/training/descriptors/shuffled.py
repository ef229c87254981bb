"""What positions are worth to a descriptor: the same one, told those of other key points."""

from __future__ import annotations

import copy
from typing import Any, cast

import numpy as np

from ml.keypoints import Descriptor


def with_shuffled_positions(descriptor: Any, *, seed: int) -> Descriptor | None:
    """A descriptor that is told the positions of other key points, while patches stay.

    Every call permutes anew, so that two images share no position. None for descriptors that do not
    look at where points are: only those with a graph over the key points (``graph``) do.
    """
    graph = getattr(descriptor, "graph", None)
    if graph is None:
        return None
    shuffled: Any = copy.copy(descriptor)
    shuffled.name = f"{descriptor.name} shuffled"
    shuffled.graph = _ShuffledGraph(graph, np.random.default_rng(seed))
    return cast(Descriptor, shuffled)


class _ShuffledGraph:
    """A graph network whose second argument, (N, ...) positions, is permuted first."""

    def __init__(self, graph: Any, rng: np.random.Generator) -> None:
        self.config = graph.config
        self._graph, self._rng = graph, rng

    def __call__(self, vectors: Any, positions: Any) -> Any:
        return self._graph(vectors, positions[self._rng.permutation(len(positions))])

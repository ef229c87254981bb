"""The paper's supervised rival: the same graphs, a graph network trained by their labels.

Labels of a query's own patient must not have been seen: the network is trained again for each
patient-disjoint fold on the others, and embeds the fold's queries and the whole gallery. Most of
the gallery has been trained on, which the paper avoids by a test set of its own; our sets are too
small for that, and the report says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.spatial.distance import cdist

from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.splits import SplitConfig, split_patients
from ml.imaging.slides import open_slide
from ml.roi import RoiEncoder
from ml.training.roi.encoder.graph import GraphTrainConfig, embed_graphs, train_graph_encoder
from ml.types import ArrayF64, Progress

SUPERVISED = "supervised_gnn"
_FOLDS = 4
"""As many as ``SplitConfig`` has: the paper's number."""


def supervised_distances(
    tasks: Mapping[str, Sequence[RoiRecord]],
    encoder: RoiEncoder,
    *,
    seed: int,
    progress: Progress,
) -> dict[str, ArrayF64]:
    """(N, N) distances by task, from each query by the network that has not seen its patient.

    Args:
        tasks: the same regions under different labels.
        encoder: its patch features are the vertices, its sampling the graph.
    Raises:
        BadInputError: a fold whose training regions all have one label.
    Source: the retrieval paper, section IV-B (GNN-LR with dense sampling and vertex dropout).
    """
    records = next(iter(tasks.values()))
    graphs = []
    for done, record in enumerate(records, 1):
        with open_slide(record.image) as slide:
            graphs.append(encoder.region_graph(slide, record.geometry, record.mpp))
        progress(done, len(records), "graphs")
    patients = len({record.patient for record in records})
    config = GraphTrainConfig(seed=seed)
    out = {}
    for name, task in tasks.items():
        dealt = split_patients(task, SplitConfig(folds=min(_FOLDS, patients), seed=seed)).fold_of()
        fold = np.array([dealt[record.patient] for record in task])
        distance = np.zeros((len(task), len(task)))
        for number in np.unique(fold):
            progress(int(number), int(fold.max()) + 1, f"supervised network, {name}")
            seen = np.flatnonzero(fold != number).tolist()
            network = train_graph_encoder(
                [graphs[i] for i in seen], [task[i].label for i in seen], config=config
            )
            vectors = embed_graphs(network, graphs)
            queries = np.flatnonzero(fold == number)
            distance[queries] = cdist(vectors[queries], vectors)
        out[name] = distance
    return out

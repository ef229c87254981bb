"""Training of graph encoders on regions, by SimCLR or by labels (GNN-LR), for comparison.

Both use the same graphs and the same vertex dropout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ml.errors import BadInputError
from ml.networks.gcn import ProjectionHead
from ml.roi.graph import RoiGraph
from ml.training.common.steps import descend
from ml.training.roi.encoder.augment import vertex_dropout
from ml.training.roi.losses import nt_xent
from ml.types import ArrayF32, ArrayI64, Progress, no_progress


@dataclass(frozen=True, slots=True)
class GraphTrainConfig:
    """One training run of a graph encoder."""

    encoder: str = "gcn"  # see graph_encoders.GRAPH_ENCODERS
    hidden_dim: int = 64
    out_dim: int = 64
    steps: int = 150
    batch: int = 24  # regions a step
    drop: tuple[float, float] = (0.1, 0.5)  # share of vertices a view loses
    temperature: float = 0.1  # tau of equation 1
    learning_rate: float = 1e-3  # AdamW
    weight_decay: float = 1e-4  # AdamW
    seed: int = 0


def train_graph_encoder(
    graphs: Sequence[RoiGraph],
    labels: Sequence[str] | None = None,
    *,
    config: GraphTrainConfig | None = None,
    progress: Progress = no_progress,
) -> nn.Module:
    """Train a graph encoder.

    Args:
        graphs: regions, vertices standardised.
        labels: one for each region, to train by (a two-layer MLP gives the class scores, dropped
            afterwards); None to train without.
    Returns:
        The encoder, in evaluation mode; see ``embed_graphs``.
    Raises:
        BadInputError: fewer than two regions, or fewer than two labels.
    Source: the retrieval paper, sections III-B and IV-B.
    """
    # Imported here, as it takes seconds and learners without a graph encoder need this module.
    from ml.networks.graph_encoders import make_graph_encoder

    config = config or GraphTrainConfig()
    classes = sorted(set(labels)) if labels is not None else []
    if len(graphs) < 2:
        raise BadInputError(f"expected two regions or more, got {len(graphs)}")
    if labels is not None and len(classes) < 2:
        raise BadInputError(f"expected two labels or more, got {len(classes)}")
    torch.manual_seed(config.seed)
    network = make_graph_encoder(
        config.encoder,
        in_dim=graphs[0].x.shape[1],
        hidden_dim=config.hidden_dim,
        out_dim=config.out_dim,
    )
    head = ProjectionHead(config.out_dim, config.hidden_dim, len(classes) or config.out_dim)
    optimiser = torch.optim.AdamW(
        [*network.parameters(), *head.parameters()],
        lr=config.learning_rate,
        weight_decay=config.weight_decay,
    )
    for step in range(config.steps):
        rng = np.random.default_rng((config.seed, step))
        rows = rng.permutation(len(graphs))[: config.batch]
        first = head(_view(network, graphs, rows, rng, config))
        if labels is None:
            second = head(_view(network, graphs, rows, rng, config))
            loss = nt_xent(first, second, temperature=config.temperature)
        else:
            target = torch.tensor([classes.index(labels[row]) for row in rows])
            loss = functional.cross_entropy(first, target)
        value = descend(optimiser, loss)
        progress(step + 1, config.steps, f"{config.encoder}, loss {value:.3f}")
    return network.eval()


def embed_graphs(network: nn.Module, graphs: Sequence[RoiGraph]) -> ArrayF32:
    """Embed R graphs, (R, out_dim) float32 of unit length."""
    with torch.inference_mode():
        vectors = functional.normalize(network(*batched_graphs(graphs)), dim=1)
    return np.asarray(vectors.numpy().copy(), dtype=np.float32)


def subgraph(graph: RoiGraph, vertices: ArrayI64) -> RoiGraph:
    """Subgraph of the vertices in ``vertices`` (ascending) and the edges between them."""
    new_number = np.full(len(graph), -1, np.int64)
    new_number[vertices] = np.arange(len(vertices))
    moved = new_number[graph.edge_index]
    return RoiGraph(graph.x[vertices], graph.pos[vertices], moved[:, (moved >= 0).all(axis=0)])


def _view(
    network: nn.Module,
    graphs: Sequence[RoiGraph],
    rows: ArrayI64,
    rng: np.random.Generator,
    config: GraphTrainConfig,
) -> Tensor:
    views = [
        subgraph(
            graphs[row], vertex_dropout(rng, len(graphs[row]), drop=config.drop, keep_at_least=2)
        )
        for row in rows
    ]
    return torch.as_tensor(network(*batched_graphs(views)))


def batched_graphs(graphs: Sequence[RoiGraph]) -> tuple[Tensor, Tensor, Tensor]:
    """Join graphs: (N, C) features, (2, M) edges and (N,) the graph of each vertex."""
    sizes = [len(graph) for graph in graphs]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    edges = [g.edge_index + start for g, start in zip(graphs, starts, strict=True)]
    return (
        torch.from_numpy(np.concatenate([graph.x for graph in graphs])),
        torch.from_numpy(np.ascontiguousarray(np.concatenate(edges, axis=1))),
        torch.from_numpy(np.repeat(np.arange(len(graphs)), sizes)),
    )

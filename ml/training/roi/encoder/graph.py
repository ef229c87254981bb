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
    regions = _Regions.create(graphs)
    views = 1 if labels is not None else 2
    for step in range(config.steps):
        rng = np.random.default_rng((config.seed, step))
        rows = rng.permutation(len(graphs))[: config.batch]
        # Both views are embedded in one pass: vectors do not depend on other graphs.
        out = head(network(*regions.views(np.tile(rows, views), rng, config.drop)))
        if labels is None:
            first, second = out.chunk(2)
            loss = nt_xent(first, second, temperature=config.temperature)
        else:
            target = torch.tensor([classes.index(labels[row]) for row in rows])
            loss = functional.cross_entropy(out, target)
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


@dataclass(frozen=True, slots=True)
class _Regions:
    """Graphs joined once, from which views are taken.

    Attributes:
        x: (N, C) vertices of all graphs.
        sizes, starts: (R,) vertices of each graph.
        edges: (2, M) within each graph, joined.
        edge_sizes, edge_starts: (R,).
    """

    x: ArrayF32
    sizes: ArrayI64
    starts: ArrayI64
    edges: ArrayI64
    edge_sizes: ArrayI64
    edge_starts: ArrayI64

    @classmethod
    def create(cls, graphs: Sequence[RoiGraph]) -> _Regions:
        sizes = np.array([len(graph) for graph in graphs], np.int64)
        edge_sizes = np.array([graph.edge_index.shape[1] for graph in graphs], np.int64)
        return cls(
            np.concatenate([graph.x for graph in graphs]),
            sizes,
            np.cumsum(sizes) - sizes,
            np.concatenate([graph.edge_index for graph in graphs], axis=1),
            edge_sizes,
            np.cumsum(edge_sizes) - edge_sizes,
        )

    def views(
        self, rows: ArrayI64, rng: np.random.Generator, drop: tuple[float, float]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Draw a view of each of the graphs ``rows``, without a random share of its vertices.

        At least two vertices of a graph remain, if it has as many.

        Args:
            drop: Smallest and largest share of vertices to remove.
        Returns:
            Vertices (N, C), edges (2, M), and the number (N,) of each vertex's graph in ``rows``.
        """
        sizes = self.sizes[rows]
        share = 1 - rng.uniform(*drop, size=len(rows))
        kept_counts = np.maximum(np.rint(sizes * share).astype(np.int64), np.minimum(2, sizes))
        batch = np.repeat(np.arange(len(rows)), sizes)
        starts = np.cumsum(sizes) - sizes
        order = np.lexsort((rng.random(len(batch)), batch))
        is_kept = np.zeros(len(batch), bool)
        is_kept[order] = np.arange(len(batch)) - starts[batch] < kept_counts[batch]
        vertices = np.arange(len(batch)) - starts[batch] + self.starts[rows][batch]
        edge_sizes = self.edge_sizes[rows]
        of_edge = np.repeat(np.arange(len(rows)), edge_sizes)
        first = self.edge_starts[rows] - (np.cumsum(edge_sizes) - edge_sizes)
        edges = self.edges[:, np.arange(len(of_edge)) + first[of_edge]] + starts[of_edge]
        edges = edges[:, is_kept[edges].all(axis=0)]
        number = np.cumsum(is_kept) - 1
        return (
            torch.from_numpy(self.x[vertices[is_kept]]),
            torch.from_numpy(number[edges]),
            torch.from_numpy(batch[is_kept]),
        )

"""Cross-view contrastive training of the key point CNN and its graph network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor, nn

from ml.geometry import transform_points
from ml.keypoints.descriptors.learned import PAD_PX, as_plane, pad_image
from ml.keypoints.descriptors.learned_weights import read_descriptor
from ml.networks.device import REFERENCE, Compute
from ml.networks.keypoint_cnn import KeypointCnn
from ml.networks.keypoint_gnn import KeypointGnn, normalised_positions
from ml.training.common.held_out import evaluating, record_held_out
from ml.training.common.peers import peers
from ml.training.common.run import History
from ml.training.common.start import take_weights
from ml.training.common.steps import half_cosine, set_rate
from ml.training.descriptors.contrast_config import ContrastConfig
from ml.training.descriptors.losses import Projection, cross_view
from ml.training.descriptors.views import KeypointStill, make_view
from ml.types import ArrayF32, ArrayF64, ArrayI64

MAX_HELD_OUT = 4
"""Number of held-out stills scored during a run."""
_HELD_OUT = 1 << 21
"""Seed of the draws from held-out stills, different from those of steps and bank."""


class ContrastLearner:
    """Contrastive learner of a CNN, with or without a graph network."""

    def __init__(
        self,
        config: ContrastConfig,
        stills: Sequence[KeypointStill],
        *,
        held_out: Sequence[KeypointStill] = (),
        start: Path | None = None,
        compute: Compute = REFERENCE,
    ) -> None:
        """Build networks and optimiser; the loss of some ``held_out`` stills is recorded."""
        self.config, self.stills, self.device = config, stills, compute.device
        self.compute = compute
        chosen = np.unique(
            np.linspace(0, len(held_out) - 1, min(MAX_HELD_OUT, len(held_out))).astype(int)
        )
        self.held_out = [held_out[i] for i in chosen]
        self._bank: dict[int, ViewPair] = {}
        self.network = KeypointCnn(config.network)
        self.graph = KeypointGnn(config.graph) if config.has_graph else None
        self.projection = Projection(config.network.dim, config.projection_dim)
        if start is not None:
            load_start(self.network, self.graph, start)
        self.modules: dict[str, nn.Module] = {
            "network": self.network,
            "projection": self.projection,
        }
        if self.graph is not None:
            self.modules["graph"] = self.graph
        trained = [m for n, m in self.modules.items() if n != "network" or config.train_cnn]
        for module in self.modules.values():
            module.to(self.device)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.network.train(config.train_cnn)
        self.optimiser = torch.optim.Adam(
            [p for m in trained for p in m.parameters()], lr=config.learning_rate
        )

    def step(self, number: int, history: History) -> float:
        """Take a step over ``pairs`` stills with a view of each."""
        config = self.config
        rng = np.random.default_rng((config.seed, peers().draw_number(number)))
        share = half_cosine(number, config.steps) if config.decay else 1.0
        set_rate(self.optimiser, config.learning_rate * share)
        self.optimiser.zero_grad()
        total = 0.0
        for _ in range(config.pairs):
            loss = self._pair_loss(rng) / config.pairs
            loss.backward()
            total += float(loss.detach())
        peers().average(self.optimiser)
        self.optimiser.step()
        if self.held_out:
            record_held_out(history, number, self._held_out_loss)
        return total

    def _held_out_loss(self) -> float:
        """Loss over fixed views of the held-out stills."""
        losses = []
        with evaluating(self.modules.values()):
            for number, still in enumerate(self.held_out):
                rng = np.random.default_rng((self.config.seed, _HELD_OUT, number))
                losses.append(float(self._loss(self._draw_pair(rng, [still]), rng)))
        return float(np.mean(losses))

    def _pair_loss(self, rng: np.random.Generator) -> Tensor:
        """Loss (equation 6) of one still and one view of it."""
        return self._loss(self.pair(rng), rng)

    def _loss(self, pair: ViewPair, rng: np.random.Generator) -> Tensor:
        config = self.config
        rows = random_rows(rng, len(pair.xy[0]), min_share=config.min_share)
        first, second = (self._project(pair, side, rows) for side in (0, 1))
        nodes = neighbour_batches(rng, pair.xy[0][rows], config.neighbours, far=config.far)
        groups = torch.from_numpy(nodes).to(self.device)
        return cross_view(first[groups], second[groups], temperature=config.temperature)

    def pair(self, rng: np.random.Generator) -> ViewPair:
        """A new random pair, or a pair of the bank, whose features are computed once."""
        if self.config.train_cnn or not self.config.bank:
            return self._draw_pair(rng, self.stills)
        number = int(rng.integers(self.config.bank))
        if number not in self._bank:
            pair_rng = np.random.default_rng((self.config.seed, 1 << 20, number))
            self._bank[number] = self._draw_pair(pair_rng, self.stills)
        return self._bank[number]

    def _draw_pair(self, rng: np.random.Generator, stills: Sequence[KeypointStill]) -> ViewPair:
        still = stills[int(rng.integers(len(stills)))]
        planes, H_view_from_still = self._planes(rng, still)
        moved = transform_points(H_view_from_still, still.xy).astype(np.float32)
        visible = seen_rows(moved, still.grey.shape)
        jitter = rng.normal(0, self.config.jitter_px, (len(visible), 2)).astype(np.float32)
        xy = (still.xy[visible], moved[visible] + jitter)
        with torch.set_grad_enabled(self.config.train_cnn and torch.is_grad_enabled()):
            with self.compute.training_precision():
                shared = self.network.shared(planes.to(self.device))
            shared = shared.float()
            features = [
                self.network.at_points(
                    shared[i : i + 1], torch.from_numpy(points).to(self.device) + PAD_PX
                )
                for i, points in enumerate(xy)
            ]
        size = (still.grey.shape[0], still.grey.shape[1])
        return ViewPair(xy, (features[0], features[1]), size)

    def _planes(self, rng: np.random.Generator, still: KeypointStill) -> tuple[Tensor, ArrayF64]:
        """(2, 1, H, W) inputs of the network: a still and a view of it; and the view's matrix."""
        step = self.config.network.map_px
        view = make_view(rng, still, self.config.view)
        both = [as_plane(pad_image(p, step=step)) for p in (still.equalised, view.equalised)]
        return torch.cat(both), view.H_view_from_still

    def _project(self, pair: ViewPair, side: int, rows: ArrayI64) -> Tensor:
        """(n, projection_dim) projections of some nodes of one of the two views."""
        vectors = pair.features[side][torch.from_numpy(rows).to(self.device)]
        with self.compute.training_precision():
            if self.graph is not None:
                vectors = self.graph(vectors, self._node_positions(self.graph, pair, side, rows))
            out: Tensor = self.projection(vectors)
        return out.float()

    def _node_positions(
        self, graph: KeypointGnn, pair: ViewPair, side: int, rows: ArrayI64
    ) -> Tensor:
        """(n, 2) positions of some nodes as the graph network sees them."""
        xy = torch.from_numpy(np.ascontiguousarray(pair.xy[side][rows])).to(self.device)
        kind = graph.config.position
        return normalised_positions(xy, size_px=pair.size_px, position=kind)


@dataclass(frozen=True, slots=True)
class ViewPair:
    """A still and a view of it: points (N, 2) and features (N, D) of the nodes seen in both."""

    xy: tuple[ArrayF32, ArrayF32]
    features: tuple[Tensor, Tensor]
    size_px: tuple[int, int]  # height, width


def seen_rows(xy: ArrayF32, shape: tuple[int, ...]) -> ArrayI64:
    """Rows of the points inside an image of that shape, ascending."""
    inside = (xy >= 0).all(axis=1) & (xy[:, 0] <= shape[1] - 1) & (xy[:, 1] <= shape[0] - 1)
    return np.flatnonzero(inside).astype(np.int64)


def random_rows(rng: np.random.Generator, count: int, *, min_share: float) -> ArrayI64:
    """Draw a random share of ``count`` rows, at least ``min_share`` and two of them, ascending."""
    row_count = max(2, round(count * rng.uniform(min_share, 1.0)))
    return np.sort(rng.permutation(count)[:row_count]).astype(np.int64)


def neighbour_batches(
    rng: np.random.Generator, xy: ArrayF32, size: int, *, far: float = 0.0
) -> ArrayI64:
    """Mini-batches: (N, size) rows, each node and then its neighbours; fewer if N is less.

    A share ``far`` of the neighbours is drawn among all nodes, because key points are confused more
    often with distant ones; the rest are the nearest.

    Source: graph-ssl-endoscopic-matching, section 4.2, "mini-batch of node neighbors"; the paper
        does not say which neighbours.
    """
    count = min(size, len(xy))
    drawn = round(far * (count - 1))
    near = cKDTree(xy).query(xy, k=count - drawn)[1].reshape(len(xy), count - drawn)
    if not drawn:
        return np.asarray(near, np.int64)
    order = rng.random((len(xy), len(xy)))
    np.put_along_axis(order, near, np.inf, axis=1)
    distant = np.argpartition(order, drawn - 1, axis=1)[:, :drawn]
    return np.concatenate([near, distant], axis=1).astype(np.int64)


def load_start(network: KeypointCnn, graph: KeypointGnn | None, path: Path) -> None:
    """Copy the weights of the CNN, and of the graph if there is one, from a file.

    Raises:
        WeightsError: the file holds another network, or one of other sizes.
    """
    start = read_descriptor(path)
    take_weights(network, start.network, path)
    if graph is not None and start.graph is not None:
        take_weights(graph, start.graph, path)

"""Graph encoders trained without and with labels."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import BadInputError
from ml.roi.graph import build_graph
from ml.training.roi.encoder.graph import (
    GraphTrainConfig,
    _Regions,
    embed_graphs,
    subgraph,
    train_graph_encoder,
)


@pytest.fixture(scope="module")
def regions():
    """Graphs of two kinds that differ in one feature's mean."""
    rng = np.random.default_rng(0)
    graphs, labels = [], []
    for number in range(16):
        kind = number % 2
        x = rng.normal(0, 1, (6, 5)).astype(np.float32)
        x[:, 0] += 4 * kind
        graphs.append(build_graph(x, rng.uniform(0, 900, (6, 2))))
        labels.append("ab"[kind])
    return graphs, labels


@pytest.mark.parametrize("name", ["mean", "gcn", "diffpool", "topk"])
def test_labels_train_every_encoder_to_separate_the_kinds(regions, name):
    graphs, labels = regions
    config = GraphTrainConfig(encoder=name, hidden_dim=8, out_dim=8, steps=60, learning_rate=1e-2)
    vectors = embed_graphs(train_graph_encoder(graphs, labels, config=config), graphs)
    distance = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    nearest = [labels[i] for i in distance.argmin(axis=1)]
    assert np.mean([a == b for a, b in zip(nearest, labels, strict=True)]) > 0.8


def test_without_labels_the_same_seed_gives_the_same_vectors(regions):
    graphs, _ = regions
    config = GraphTrainConfig(hidden_dim=8, out_dim=8, steps=4)
    first, second = (
        embed_graphs(train_graph_encoder(graphs, config=config), graphs) for _ in range(2)
    )
    assert np.array_equal(first, second)
    assert np.allclose(np.linalg.norm(first, axis=1), 1, atol=1e-5)


def test_a_subgraph_retains_the_edges_between_its_vertices():
    x = np.arange(4, dtype=np.float32)[:, None]
    graph = build_graph(x, np.array([[0, 0], [400, 0], [800, 0], [1200, 0]], float))
    part = subgraph(graph, np.array([0, 2, 3]))
    assert part.x.ravel().tolist() == [0, 2, 3]
    assert sorted(map(tuple, part.edge_index.T.tolist())) == [(1, 2), (2, 1)]


def test_one_label_raises_an_error(regions):
    with pytest.raises(BadInputError, match=r"labels .*got 1"):
        train_graph_encoder(regions[0], ["a"] * 16)


def test_one_region_raises_an_error(regions):
    with pytest.raises(BadInputError, match=r"regions .*got 1"):
        train_graph_encoder(regions[0][:1])


def test_views_lose_whole_vertices_and_keep_the_edges_between_the_others(regions):
    graphs, _ = regions
    rows = np.array([3, 0, 3])
    x, edges, batch = (
        tensor.numpy()
        for tensor in _Regions.create(graphs).views(rows, np.random.default_rng(1), (0.3, 0.5))
    )
    assert batch.tolist() == sorted(batch.tolist()) and set(batch.tolist()) == {0, 1, 2}
    for place, row in enumerate(rows):
        own = np.flatnonzero(batch == place)
        known = [int(np.flatnonzero((graphs[row].x == vertex).all(axis=1))[0]) for vertex in x[own]]
        assert 3 <= len(own) <= 4 and known == sorted(known)
        inside = edges[:, batch[edges[0]] == place] - own[0]
        result = {(known[a], known[b]) for a, b in inside.T}
        expected = {
            (int(a), int(b)) for a, b in graphs[row].edge_index.T if a in known and b in known
        }
        assert result == expected
    first, second = x[batch == 0], x[batch == 2]
    assert first.shape != second.shape or not np.array_equal(first, second)

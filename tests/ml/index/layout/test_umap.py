"""Layout of vectors: reproducible, with clusters separated."""

from __future__ import annotations

import numpy as np
import pytest

from ml.index.layout.umap import LayoutConfig, umap_layout

DIM = 24


def clusters(sizes, seed=0, spread=0.3):
    """Vectors of distant clusters, and the cluster of each."""
    rng = np.random.default_rng(seed)
    centroids = rng.normal(size=(len(sizes), DIM)) * 3
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    return (centroids[cluster] + rng.normal(size=(len(cluster), DIM)) * spread).astype(
        "f4"
    ), cluster


def neighbour_purity(xy, cluster, k=5):
    """Mean share of the k nearest points that are of the same cluster."""
    apart = np.linalg.norm(xy[:, None] - xy[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return (cluster[np.argsort(apart, axis=1)[:, :k]] == cluster[:, None]).mean()


def test_equal_vectors_give_identical_layouts():
    vectors, _ = clusters([40, 60])
    assert np.array_equal(umap_layout(vectors), umap_layout(vectors.copy()))


def test_clusters_are_separated_within_the_unit_square():
    vectors, cluster = clusters([60, 80, 40, 50])
    xy = umap_layout(vectors)
    assert xy.shape == (230, 2)
    assert xy.dtype == np.float32
    assert (xy >= 0).all()
    assert (xy <= 1).all()
    assert neighbour_purity(xy, cluster) > 0.98
    middle = np.stack([xy[cluster == at].mean(axis=0) for at in range(4)])
    spread = max(np.linalg.norm(xy[cluster == at] - middle[at], axis=1).mean() for at in range(4))
    others = min(np.linalg.norm(middle[a] - middle[b]) for a in range(4) for b in range(a))
    assert others > 2 * spread


def test_clusters_hidden_from_two_principal_components_are_separated():
    """Six clusters along the third to eighth axis, which two components mix."""
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(6), 50)
    vectors = rng.normal(size=(300, DIM)).astype("f4") * 0.3
    vectors[:, :2] = rng.normal(size=(300, 2)) * 2
    vectors[np.arange(300), 2 + cluster] += 4
    plain = vectors[:, :2]
    assert neighbour_purity(plain, cluster) < 0.4
    assert neighbour_purity(umap_layout(vectors), cluster) > 0.8


def test_points_outside_the_layout_are_placed_in_their_cluster():
    vectors, cluster = clusters([120, 160, 140])
    xy = umap_layout(vectors, LayoutConfig(max_points=150))
    assert neighbour_purity(xy, cluster) > 0.95


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5])
def test_few_points_get_positions(n):
    vectors, _ = clusters([n])
    xy = umap_layout(vectors)
    assert xy.shape == (n, 2)
    assert np.isfinite(xy).all()


def test_equal_vectors_are_accepted():
    xy = umap_layout(np.ones((60, DIM), dtype="f4"))
    assert np.isfinite(xy).all()


def test_progress_is_in_percent_and_can_stop_the_layout():
    vectors, _ = clusters([40, 40])
    calls = []
    umap_layout(vectors, progress=lambda done, total, phase: calls.append((done, total)))
    assert calls == sorted(calls)
    assert {total for _, total in calls} == {100}

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        umap_layout(vectors, progress=stop)

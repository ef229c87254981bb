"""Grouped centroids compared with plain k-means."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

from ml.index.files.segments.centroids import Centroids, fit_centroids
from ml.index.files.segments.segment import write_segment

DIM = 12


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(2)
    centroids = rng.standard_normal((90, DIM)) * 2
    spread = rng.standard_normal((9_000, DIM)) * 0.5
    return (centroids[rng.integers(0, 90, 9_000)] + spread).astype(np.float32)


def squared_to(centroids, vectors):
    """Squared distance and index of the nearest of all centroids for each vector."""
    flat = faiss.IndexFlatL2(DIM)
    flat.add(np.ascontiguousarray(centroids))
    squared, at = flat.search(vectors, 1)
    return squared[:, 0], at[:, 0]


@pytest.mark.parametrize("count", [40, 400])
def test_grouped_centroids_are_as_good_as_plain_k_means(vectors, count):
    made = fit_centroids(vectors, count).centroids
    assert made.shape == (count, DIM)
    reference = faiss.Kmeans(DIM, count, niter=10, seed=1, min_points_per_centroid=1)
    reference.train(vectors)
    ours, theirs = (squared_to(rows, vectors)[0].mean() for rows in (made, reference.centroids))
    assert ours < 1.05 * theirs
    assert np.array_equal(made, fit_centroids(vectors, count).centroids)


def test_vectors_are_assigned_to_their_nearest_centroid(vectors):
    clusters = fit_centroids(vectors, 400)
    assigned = np.square(vectors - clusters.centroids[clusters.nearest(vectors)]).sum(1)
    best, at = squared_to(clusters.centroids, vectors)
    assert (clusters.nearest(vectors) == at).mean() > 0.99
    assert assigned.mean() < 1.001 * best.mean()


def test_equal_vectors_and_few_vectors_are_accepted():
    equal = np.ones((600, DIM), np.float32)
    assert set(Centroids(equal).nearest(equal).tolist()) <= set(range(600))
    assert len(fit_centroids(equal, 300).centroids) <= 300
    assert len(fit_centroids(equal[:5], 5).centroids) == 5


def test_the_flat_file_equals_that_of_faiss(tmp_path, vectors):
    base = tmp_path / "base"
    write_segment(base, np.arange(9_000), vectors, ivf_above=10**9, gpu_above=10**9)
    flat = faiss.IndexFlatL2(DIM)
    flat.add(vectors)
    faiss.write_index(flat, str(tmp_path / "other"))
    assert (base / "flat.faiss").read_bytes() == (tmp_path / "other").read_bytes()

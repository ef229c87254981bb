"""Centres by way of groups: as good as all looked at together, and the same each time."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

from ml.index.base.clusters import Centres, centres_of
from ml.index.base.segment import write_segment

DIM = 12


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(2)
    middles = rng.standard_normal((90, DIM)) * 2
    spread = rng.standard_normal((9_000, DIM)) * 0.5
    return (middles[rng.integers(0, 90, 9_000)] + spread).astype(np.float32)


def squared_to(centres, vectors):
    """Of each vector to its nearest centre, looked up among all."""
    flat = faiss.IndexFlatL2(DIM)
    flat.add(np.ascontiguousarray(centres))
    squared, at = flat.search(vectors, 1)
    return squared[:, 0], at[:, 0]


@pytest.mark.parametrize("count", [40, 400])
def test_they_lie_as_close_as_those_of_one_large_k_means(vectors, count):
    made = centres_of(vectors, count).centres
    assert made.shape == (count, DIM)
    whole = faiss.Kmeans(DIM, count, niter=10, seed=1, min_points_per_centroid=1)
    whole.train(vectors)
    ours, theirs = (squared_to(one, vectors)[0].mean() for one in (made, whole.centroids))
    assert ours < 1.05 * theirs
    assert np.array_equal(made, centres_of(vectors, count).centres)


def test_hardly_a_vector_gets_another_centre_than_its_nearest(vectors):
    found = centres_of(vectors, 400)
    own = np.square(vectors - found.centres[found.nearest(vectors)]).sum(1)
    best, at = squared_to(found.centres, vectors)
    assert (found.nearest(vectors) == at).mean() > 0.99
    assert own.mean() < 1.001 * best.mean()


def test_equal_vectors_and_more_centres_than_vectors_are_borne():
    same = np.ones((600, DIM), np.float32)
    assert set(Centres(same).nearest(same).tolist()) <= set(range(600))
    assert len(centres_of(same, 300).centres) <= 300
    assert len(centres_of(same[:5], 5).centres) == 5


def test_the_file_of_all_vectors_is_what_faiss_writes(tmp_path, vectors):
    base = tmp_path / "base"
    write_segment(base, np.arange(9_000), vectors, ivf_above=10**9, gpu_above=10**9)
    flat = faiss.IndexFlatL2(DIM)
    flat.add(vectors)
    faiss.write_index(flat, str(tmp_path / "other"))
    assert (base / "flat.faiss").read_bytes() == (tmp_path / "other").read_bytes()

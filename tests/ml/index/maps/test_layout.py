"""A map of vectors: the same for the same, neighbours together, others placed among theirs."""

from __future__ import annotations

import numpy as np
import pytest

from ml.index.maps import LayoutConfig, lay_out

DIM = 24


def clusters(sizes, seed=0, spread=0.3):
    """Vectors of clusters far apart, and whose each is."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(len(sizes), DIM)) * 3
    whose = np.repeat(np.arange(len(sizes)), sizes)
    return (centres[whose] + rng.normal(size=(len(whose), DIM)) * spread).astype("f4"), whose


def share_of_own(xy, whose, k=5):
    """Of each point's nearest on the map, how many are of its cluster."""
    apart = np.linalg.norm(xy[:, None] - xy[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return (whose[np.argsort(apart, axis=1)[:, :k]] == whose[:, None]).mean()


def test_the_same_vectors_give_the_same_map_to_the_bit():
    vectors, _ = clusters([40, 60])
    assert np.array_equal(lay_out(vectors), lay_out(vectors.copy()))


def test_clusters_lie_apart_within_the_frame():
    vectors, whose = clusters([60, 80, 40, 50])
    xy = lay_out(vectors)
    assert xy.shape == (230, 2)
    assert xy.dtype == np.float32
    assert (xy >= 0).all()
    assert (xy <= 1).all()
    assert share_of_own(xy, whose) > 0.98
    middle = np.stack([xy[whose == at].mean(axis=0) for at in range(4)])
    own = max(np.linalg.norm(xy[whose == at] - middle[at], axis=1).mean() for at in range(4))
    others = min(np.linalg.norm(middle[a] - middle[b]) for a in range(4) for b in range(a))
    assert others > 2 * own


def test_a_finer_order_than_the_principal_components_show_is_kept():
    """Six clusters along the third to eighth axis: two components mix them, the map does not."""
    rng = np.random.default_rng(3)
    whose = np.repeat(np.arange(6), 50)
    vectors = rng.normal(size=(300, DIM)).astype("f4") * 0.3
    vectors[:, :2] = rng.normal(size=(300, 2)) * 2
    vectors[np.arange(300), 2 + whose] += 4
    plain = vectors[:, :2]
    assert share_of_own(plain, whose) < 0.4
    assert share_of_own(lay_out(vectors), whose) > 0.8


def test_points_that_are_not_laid_out_lie_among_their_own():
    vectors, whose = clusters([120, 160, 140])
    xy = lay_out(vectors, LayoutConfig(laid_out=150))
    assert share_of_own(xy, whose) > 0.95


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5])
def test_few_points_have_places_as_well(n):
    vectors, _ = clusters([n])
    xy = lay_out(vectors)
    assert xy.shape == (n, 2)
    assert np.isfinite(xy).all()


def test_equal_vectors_do_no_harm():
    xy = lay_out(np.ones((60, DIM), dtype="f4"))
    assert np.isfinite(xy).all()


def test_progress_is_told_in_percent_and_stops_the_work():
    vectors, _ = clusters([40, 40])
    told = []
    lay_out(vectors, progress=lambda done, total, phase: told.append((done, total)))
    assert told == sorted(told)
    assert {total for _, total in told} == {100}

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lay_out(vectors, progress=stop)

"""Diffusion over the neighbour graph."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import ShapeError
from ml.index.ranking.diffusion import DiffusionConfig, diffused_distances


def arc(*degrees):
    angle = np.radians(degrees)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def test_the_end_of_a_chain_is_nearer_than_an_isolated_region():
    query = arc(0)[0]
    # 10, 20, ... 50 are a chain; -45 is nearer to the query than 50 and has no neighbours.
    gallery = arc(10, 20, 30, 40, 50, -45)
    plain = np.linalg.norm(gallery - query, axis=1)
    assert plain[5] < plain[4]
    distances = diffused_distances(query, gallery, DiffusionConfig(neighbours=2, direct=0))
    assert distances.argmax() == 5


def test_the_result_is_the_limit_of_iterated_diffusion():
    rng = np.random.default_rng(1)
    gallery, query = rng.standard_normal((12, 4)) + 1, rng.standard_normal(4) + 1
    config = DiffusionConfig(neighbours=4, direct=0)
    unit = [row / np.linalg.norm(row) for row in gallery]
    near = [
        sorted((j for j in range(12) if j != i), key=lambda j, i=i: -(unit[i] @ unit[j]))[:4]
        for i in range(12)
    ]
    weights = np.zeros((12, 12))
    for i in range(12):
        for j in near[i]:
            if i in near[j]:
                weights[i, j] = max(unit[i] @ unit[j], 0) ** config.power
    degree = weights.sum(axis=1)
    degree[degree == 0] = 1
    start = np.array([max(row @ query / np.linalg.norm(query), 0) for row in unit]) ** config.power
    start[np.argsort(-start)[4:]] = 0
    state = start.copy()
    for _ in range(500):
        state = config.alpha * (weights / np.sqrt(np.outer(degree, degree))) @ state + start
    distances = diffused_distances(query, gallery, config)
    reached = state > 1e-12
    assert reached.sum() >= 4
    assert distances[reached] == pytest.approx(-state[reached] / state.max())
    assert (distances[~reached] >= 0).all()


def test_regions_beyond_the_reach_are_ordered_by_distance():
    gallery, query = arc(10, 20, 30, 40, 50, -45), arc(0)[0]
    distances = diffused_distances(query, gallery, DiffusionConfig(neighbours=2, direct=0, reach=3))
    assert (distances[:3] < 0).all() and np.argsort(distances)[3:].tolist() == [3, 5, 4]
    near = diffused_distances(query, gallery[:3], DiffusionConfig(neighbours=2, direct=0))
    assert distances[:3] == pytest.approx(near)


def test_unreached_regions_are_ordered_by_distance():
    gallery = arc(5, 6, 170, 120)  # the last two have only each other as neighbours
    distances = diffused_distances(arc(0)[0], gallery, DiffusionConfig(neighbours=1, direct=0))
    assert np.argsort(distances).tolist() == [0, 1, 3, 2]


def test_a_large_direct_weight_gives_the_order_of_distances():
    gallery, query = arc(10, 20, 30, 40, 50, -45), arc(0)[0]
    configs = [DiffusionConfig(neighbours=2, direct=d, direct_power=3) for d in (0, 100)]
    orders = [np.argsort(diffused_distances(query, gallery, config)) for config in configs]
    assert orders[0].tolist() != orders[1].tolist() == [0, 1, 2, 3, 5, 4]


def test_the_direct_share_is_that_of_the_region_where_the_query_is_expanded():
    gallery, query, expanded = arc(-20, 10, 20, 30), arc(0)[0], arc(25)[0]
    config = DiffusionConfig(neighbours=2, direct=100)
    far = diffused_distances(query, gallery, config, expanded=expanded)
    assert np.argsort(far).tolist() == [1, 2, 0, 3]  # -20 is as near as 20, but not reached
    start = DiffusionConfig(neighbours=2, direct=0)
    reached = slice(1, None)
    assert diffused_distances(query, gallery, start, expanded=expanded)[reached] == pytest.approx(
        diffused_distances(expanded, gallery, start)[reached]
    )


@pytest.mark.parametrize("count", [0, 1])
def test_a_gallery_of_at_most_one_region_is_accepted(count):
    assert diffused_distances(np.ones(3), np.ones((count, 3))).tolist() == [0.0] * count


def test_vectors_of_another_length_raise_an_error():
    with pytest.raises(ShapeError, match="gallery"):
        diffused_distances(np.ones(3), np.ones((4, 2)))

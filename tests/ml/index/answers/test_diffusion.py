"""What is near a query by way of others."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import ShapeError
from ml.index.answers.diffusion import DiffusionConfig, diffused_distances


def arc(*degrees):
    angle = np.radians(degrees)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def test_a_chain_of_neighbours_brings_its_end_nearer_than_a_lone_region():
    query = arc(0)[0]
    # 10, 20, ... 50 hand it on; -45 is nearer to the query than 50, and joined to nobody.
    gallery = arc(10, 20, 30, 40, 50, -45)
    plain = np.linalg.norm(gallery - query, axis=1)
    assert plain[5] < plain[4]
    found = diffused_distances(query, gallery, DiffusionConfig(neighbours=2, direct=0))
    assert found.argmax() == 5


def test_it_is_the_limit_of_passing_on_step_by_step():
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
    found = diffused_distances(query, gallery, config)
    reached = state > 1e-12
    assert reached.sum() >= 4
    assert found[reached] == pytest.approx(-state[reached] / state.max())
    assert (found[~reached] >= 0).all()


def test_what_lies_beyond_its_reach_keeps_the_order_of_its_distance():
    gallery, query = arc(10, 20, 30, 40, 50, -45), arc(0)[0]
    found = diffused_distances(query, gallery, DiffusionConfig(neighbours=2, direct=0, reach=3))
    assert (found[:3] < 0).all() and np.argsort(found)[3:].tolist() == [3, 5, 4]
    near = diffused_distances(query, gallery[:3], DiffusionConfig(neighbours=2, direct=0))
    assert found[:3] == pytest.approx(near)


def test_what_nothing_reaches_keeps_the_order_of_its_distance():
    gallery = arc(5, 6, 170, 120)  # the last two see only each other, from behind
    found = diffused_distances(arc(0)[0], gallery, DiffusionConfig(neighbours=1, direct=0))
    assert np.argsort(found).tolist() == [0, 1, 3, 2]


def test_the_more_is_direct_the_more_the_order_is_that_of_the_distance():
    gallery, query = arc(10, 20, 30, 40, 50, -45), arc(0)[0]
    orders = [
        np.argsort(diffused_distances(query, gallery, DiffusionConfig(neighbours=2, direct=d)))
        for d in (0, 100)
    ]
    assert orders[0].tolist() != orders[1].tolist() == [0, 1, 2, 3, 5, 4]


@pytest.mark.parametrize("count", [0, 1])
def test_a_gallery_of_nobody_passes_nothing_on(count):
    assert diffused_distances(np.ones(3), np.ones((count, 3))).tolist() == [0.0] * count


def test_vectors_of_another_length_are_refused():
    with pytest.raises(ShapeError, match=r"gallery: expected \(N, 3\)"):
        diffused_distances(np.ones(3), np.ones((4, 2)))

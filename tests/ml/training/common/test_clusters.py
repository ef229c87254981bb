"""K-means clustering."""

from __future__ import annotations

import pytest
import torch

from ml.training.common.clusters import k_means

CENTRES = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])


@pytest.fixture
def points():
    generator = torch.Generator().manual_seed(0)
    return (CENTRES[:, None] + 0.3 * torch.randn(4, 50, 2, generator=generator)).reshape(-1, 2)


def test_cluster_centres_are_recovered(points):
    centres = k_means(points, 4, 10, seed=0)
    away = torch.cdist(CENTRES, centres)
    assert sorted(away.argmin(dim=1).tolist()) == [0, 1, 2, 3]
    assert away.min(dim=1).values.max() < 0.15


def test_each_centre_is_the_mean_of_its_points(points):
    centres = k_means(points, 4, 10, seed=3)
    nearest = torch.cdist(points, centres).argmin(dim=1)
    for word in range(4):
        assert torch.allclose(centres[word], points[nearest == word].mean(dim=0), atol=1e-4)


def test_the_same_seed_gives_the_same_centres(points):
    assert torch.equal(k_means(points, 7, 3, seed=1), k_means(points, 7, 3, seed=1))
    assert not torch.equal(k_means(points, 7, 3, seed=1), k_means(points, 7, 3, seed=2))


def test_centres_without_iterations_are_points(points):
    centres = k_means(points, 5, 0, seed=0)
    assert torch.cdist(centres, points).min(dim=1).values.max() == 0


def test_an_empty_cluster_keeps_its_centre():
    same = torch.ones(6, 3)
    assert torch.equal(k_means(same, 2, 4, seed=0), torch.ones(2, 3))

"""VLAD compared with a slow loop, hand-worked values and invariances."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ml.networks.vlad import Vlad, VladConfig


@pytest.fixture
def vlad():
    generator = torch.Generator().manual_seed(0)
    network = Vlad(VladConfig(words=3, in_dim=4, out_dim=5))
    for name in ("words", "mean", "projection"):
        buffer = getattr(network, name)
        buffer.copy_(torch.randn(buffer.shape, generator=generator))
    return network


def slow_aggregated(rows, words):
    sums = np.zeros_like(words)
    for row in rows:
        nearest = min(range(len(words)), key=lambda k: float(((row - words[k]) ** 2).sum()))
        residual = row - words[nearest]
        sums[nearest] += residual / np.linalg.norm(residual)
    for word in range(len(words)):
        length = np.linalg.norm(sums[word])
        if length > 0:
            sums[word] /= length
    return sums.ravel() / np.linalg.norm(sums)


def test_aggregation_equals_a_slow_loop(vlad):
    rows = np.random.default_rng(1).normal(size=(20, 4)).astype(np.float32)
    slow = slow_aggregated(rows, vlad.words.numpy())
    assert np.allclose(vlad.aggregate(torch.from_numpy(rows)), slow, atol=1e-5)
    short = (slow - vlad.mean.numpy()) @ vlad.projection.numpy()
    vectors = vlad(torch.from_numpy(rows))
    assert vectors.shape == (5,)
    assert np.allclose(vectors, short / np.linalg.norm(short), atol=1e-5)


def test_two_words_equal_a_hand_worked_value():
    """Residuals (1, 0) and (0, 1) of the first word, (0, -1) twice of the second."""
    network = Vlad(VladConfig(words=2, in_dim=2, out_dim=4))
    network.words.copy_(torch.tensor([[0.0, 0.0], [10.0, 0.0]]))
    rows = torch.tensor([[3.0, 0.0], [0.0, 2.0], [10.0, -4.0], [10.0, -0.5]])
    expected = torch.tensor([0.5, 0.5, 0.0, -(0.5**0.5)])
    assert torch.allclose(network.aggregate(rows), expected, atol=1e-6)
    assert torch.allclose(network(rows), expected, atol=1e-6)


def test_the_vector_is_invariant_to_order_and_repetition(vlad):
    rows = torch.randn(9, 4, generator=torch.Generator().manual_seed(2))
    assert torch.allclose(vlad(rows.flip(0)), vlad(rows), atol=1e-5)
    assert torch.allclose(vlad(torch.cat([rows, rows])), vlad(rows), atol=1e-5)


def test_a_single_descriptor_gives_a_unit_vector(vlad):
    vectors = vlad(torch.ones(1, 4))
    assert float(vectors.norm()) == pytest.approx(1, abs=1e-6)
    exactly_a_word = vlad(vlad.words[:1].clone())
    assert torch.isfinite(exactly_a_word).all()

"""Adaptive triplets and contrast across two views, against hand-worked and slow versions."""

from __future__ import annotations

import math

import pytest
import torch

from ml.errors import ShapeError
from ml.training.descriptors.losses import (
    Projection,
    adaptive_triplet,
    cross_view,
    hardest_triplets,
    triplet_shares,
)


def rows(*values: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor(values)


def test_a_triplet_costs_near_minus_far_plus_half_of_near():
    anchor, positive, negative = rows((1.0, 0.0)), rows((0.0, 1.0)), rows((-1.0, 0.0))
    # |a - p|^2 = 2, |a - n|^2 = 4, margin 2 / 2
    assert float(adaptive_triplet(anchor, positive, negative)) == pytest.approx(2 - 4 + 1)
    assert float(adaptive_triplet(anchor, positive, negative, hinge=True)) == 0
    assert float(adaptive_triplet(anchor, negative, positive)) == pytest.approx(4 - 2 + 2)
    assert float(adaptive_triplet(anchor, negative, positive, hinge=True)) == pytest.approx(4)


@pytest.mark.parametrize("hinge", [False, True])
def test_the_triplet_loss_equals_equations_1_and_2_summed_over_triplets(hinge):
    a, p, n = torch.randn(3, 7, 5)
    total = 0.0
    for i in range(7):
        near = sum((float(a[i, k]) - float(p[i, k])) ** 2 for k in range(5))
        far = sum((float(a[i, k]) - float(n[i, k])) ** 2 for k in range(5))
        loss = near - far + near / 2
        total += max(loss, 0.0) if hinge else loss
    assert float(adaptive_triplet(a, p, n, hinge=hinge)) == pytest.approx(total, rel=1e-4)


def test_the_minimum_margin_replaces_a_smaller_half_distance():
    a, n = rows((1.0, 0.0), (1.0, 0.0)), rows((0.0, 1.0), (-1.0, 0.0))
    assert float(adaptive_triplet(a, a, n, hinge=True)) == 0
    # near is 0, far 2 and 4: of a margin of 3 the first lacks 1
    assert float(adaptive_triplet(a, a, n, hinge=True, min_margin=3.0)) == pytest.approx(1)
    assert float(adaptive_triplet(a, n, a, min_margin=1.5)) == pytest.approx(2 + 1.5 + 4 + 2)


def test_the_hardest_negative_equals_a_slow_search():
    a, p = torch.nn.functional.normalize(torch.randn(2, 6, 4), dim=2)
    first, second, negative = hardest_triplets(a, p)
    turned = 0
    for i in range(6):
        others = [x[k] for k in range(6) if k != i for x in (a, p)]
        nearest = {
            x: min(float((v[i] - o).square().sum()) for o in others)
            for x, v in zip("ap", (a, p), strict=True)
        }
        of, other = (p, a) if nearest["p"] < nearest["a"] else (a, p)
        turned += of is p
        assert torch.equal(first[i], of[i]) and torch.equal(second[i], other[i])
        assert float((first[i] - negative[i]).square().sum()) == pytest.approx(
            min(nearest.values()), abs=1e-5
        )
    assert 0 < turned < 6


def test_a_single_triplet_has_no_negative():
    with pytest.raises(ShapeError, match="N >= 2"):
        hardest_triplets(torch.ones(1, 3), torch.ones(1, 3))


def test_the_loss_of_unit_features_is_at_least_minus_four_per_triplet():
    a = rows((1.0, 0.0), (0.0, 1.0))
    assert float(adaptive_triplet(a, a, -a)) == pytest.approx(-8)


def test_shares_count_easy_semi_hard_and_hard():
    anchor, positive = torch.zeros(4, 3), rows((2.0, 0.0, 0.0)).expand(4, 3)  # near is 4
    # far is 1: hard; 5: semi-hard; 6 = 4 + 4 / 2: a tie, not easy; 9: easy
    negative = rows((1.0, 0.0, 0.0), (1.0, 2.0, 0.0), (1.0, 1.0, 2.0), (3.0, 0.0, 0.0))
    shares = triplet_shares(anchor, positive, negative)
    assert (shares.easy, shares.hard) == (0.25, 0.25)
    assert shares.semi_hard == pytest.approx(0.5)


def test_contrast_of_two_orthogonal_nodes_equals_a_hand_worked_value():
    nodes = torch.eye(2)
    # positive 1 / tau above; below, one intra-view and one inter-view node, cosine 0 each
    assert float(cross_view(nodes, nodes, temperature=0.5)) == pytest.approx(math.log(2) - 2)


def slow_cross_view(first: torch.Tensor, second: torch.Tensor, tau: float) -> float:
    def cosine(u: torch.Tensor, v: torch.Tensor) -> float:
        return float(u @ v / (u.norm() * v.norm()))

    def one(g: torch.Tensor, h: torch.Tensor, i: int) -> float:
        below = 0.0
        for k in range(len(g)):
            if k != i:
                below += math.exp(cosine(g[i], g[k]) / tau)
                below += math.exp(cosine(g[i], h[k]) / tau)
        return -math.log(math.exp(cosine(g[i], h[i]) / tau) / below)

    n = len(first)
    return sum(one(first, second, i) + one(second, first, i) for i in range(n)) / (2 * n)


def test_contrast_equals_equations_5_and_6_summed_over_nodes():
    first, second = torch.randn(2, 4, 6, 5)
    expected = sum(slow_cross_view(a, b, 0.2) for a, b in zip(first, second, strict=True)) / 4
    assert float(cross_view(first, second, temperature=0.2)) == pytest.approx(expected, rel=1e-4)
    loss = slow_cross_view(first[0], second[0], 0.08)
    assert float(cross_view(first[0], second[0], temperature=0.08)) == pytest.approx(loss, rel=1e-4)


def test_contrast_does_not_depend_on_the_order_of_views_or_vector_length():
    first, second = torch.randn(2, 6, 5)
    loss = cross_view(first, second, temperature=0.1)
    assert torch.allclose(cross_view(second, first, temperature=0.1), loss, atol=1e-5)
    assert torch.allclose(cross_view(3 * first, 0.2 * second, temperature=0.1), loss, atol=1e-4)


def test_the_gradient_of_the_contrast_is_finite():
    first = torch.randn(6, 5, requires_grad=True)
    cross_view(first, first.detach().clone(), temperature=0.08).backward()
    assert first.grad is not None
    assert first.grad.isfinite().all()


def test_mismatched_views_raise_an_error():
    with pytest.raises(ShapeError, match=r"got \(3, 2\), \(2, 2\)"):
        cross_view(torch.zeros(3, 2), torch.zeros(2, 2), temperature=0.1)
    with pytest.raises(ShapeError, match="n >= 2"):
        cross_view(torch.zeros(1, 2), torch.zeros(1, 2), temperature=0.1)
    with pytest.raises(ShapeError, match="three"):
        adaptive_triplet(torch.zeros(3, 2), torch.zeros(3, 2), torch.zeros(2, 2))


def test_the_projection_has_two_layers():
    projection = Projection(6, 4)
    linear = [m for m in projection.modules() if isinstance(m, torch.nn.Linear)]
    assert [(m.in_features, m.out_features) for m in linear] == [(6, 6), (6, 4)]
    assert projection(torch.zeros(3, 6)).shape == (3, 4)

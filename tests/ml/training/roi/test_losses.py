"""The contrastive losses against their equations, term by term."""

from __future__ import annotations

import math

import pytest
import torch

from ml.errors import ShapeError
from ml.training.roi.losses import label_contrast, nt_xent


def slow_nt_xent(first, second, temperature):
    """Equation 1 over all ordered positive pairs, with nothing vectorised."""
    z = [*first.tolist(), *second.tolist()]
    count = len(first)

    def similarity(a, b):
        dot = sum(x * y for x, y in zip(a, b, strict=True))
        return dot / (math.hypot(*a) * math.hypot(*b))

    total = 0.0
    for i in range(2 * count):
        j = (i + count) % (2 * count)
        others = [
            math.exp(similarity(z[i], z[k]) / temperature) for k in range(2 * count) if k != i
        ]
        total -= math.log(math.exp(similarity(z[i], z[j]) / temperature) / sum(others))
    return total / (2 * count)


@pytest.mark.parametrize("temperature", [0.07, 0.5, 1.0])
def test_the_loss_equals_a_slow_version(temperature):
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randn(6, 5, generator=generator, dtype=torch.float64) for _ in range(2))
    loss = nt_xent(first, second, temperature=temperature)
    assert float(loss) == pytest.approx(slow_nt_xent(first, second, temperature))


def test_views_that_agree_cost_less_than_views_that_do_not():
    z = torch.eye(4)
    good, bad = nt_xent(z, z, temperature=0.1), nt_xent(z, z.roll(1, 0), temperature=0.1)
    assert good < 0.01 < 5 < bad


def test_the_loss_does_not_depend_on_vector_length():
    first, second = torch.randn(4, 3), torch.randn(4, 3)
    longer = nt_xent(first * 7, second * 0.3, temperature=0.5)
    assert torch.allclose(nt_xent(first, second, temperature=0.5), longer)


def test_a_single_example_raises_an_error():
    with pytest.raises(ShapeError, match="M >= 2"):
        nt_xent(torch.randn(1, 3), torch.randn(1, 3), temperature=0.5)


def slow_label_contrast(z, labels, domains, temperature):
    """Equation 2 of Khosla et al. over pairs of different domains, with nothing vectorised."""

    def similarity(a, b):
        return float(torch.nn.functional.cosine_similarity(a, b, dim=0)) / temperature

    rows = range(len(z))
    result = []
    for i in rows:
        others = [j for j in rows if labels[j] >= 0 <= labels[i] and domains[j] != domains[i]]
        alike = [j for j in others if labels[j] == labels[i]]
        if alike:
            total = math.log(sum(math.exp(similarity(z[i], z[j])) for j in others))
            result.append(sum(total - similarity(z[i], z[j]) for j in alike) / len(alike))
    return sum(result) / len(result)


def test_the_contrast_of_labels_equals_the_slow_version():
    z = torch.randn(9, 4, generator=torch.Generator().manual_seed(2))
    labels = torch.tensor([0, 0, 0, 1, 1, 2, -1, 0, -1])
    domains = torch.tensor([0, 0, 1, 2, 3, 4, 5, 6, 0])
    loss = label_contrast(z, labels, domains, temperature=0.3)
    expected = slow_label_contrast(z, labels.tolist(), domains.tolist(), 0.3)
    assert float(loss) == pytest.approx(expected, rel=1e-4)


def test_labels_of_only_one_domain_have_zero_loss():
    z = torch.randn(4, 3, requires_grad=True)
    loss = label_contrast(z, torch.tensor([0, 0, 1, -1]), torch.tensor([0, 0, 0, 1]), temperature=1)
    loss.backward()
    assert float(loss) == 0 and torch.equal(z.grad, torch.zeros_like(z))


def test_labels_of_another_number_raise_an_error():
    with pytest.raises(ShapeError, match="domains"):
        label_contrast(torch.ones(3, 2), torch.zeros(2), torch.zeros(3), temperature=1)


def test_a_negative_near_a_view_makes_the_loss_larger():
    torch.manual_seed(0)
    first, second = torch.randn(3, 4), torch.randn(3, 4)
    plain = nt_xent(first, second, temperature=0.5)
    far = nt_xent(first, second, temperature=0.5, negatives=-first)
    near = nt_xent(first, second, temperature=0.5, negatives=first)
    assert plain < far < near

"""NT-Xent against equation 1, term by term."""

from __future__ import annotations

import math

import pytest
import torch

from ml.errors import ShapeError
from ml.training.roi.losses import nt_xent


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
def test_it_equals_the_slow_version(temperature):
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randn(6, 5, generator=generator, dtype=torch.float64) for _ in range(2))
    found = nt_xent(first, second, temperature=temperature)
    assert float(found) == pytest.approx(slow_nt_xent(first, second, temperature))


def test_views_that_agree_cost_less_than_views_that_do_not():
    z = torch.eye(4)
    good, bad = nt_xent(z, z, temperature=0.1), nt_xent(z, z.roll(1, 0), temperature=0.1)
    assert good < 0.01 < 5 < bad


def test_length_does_not_matter():
    first, second = torch.randn(4, 3), torch.randn(4, 3)
    longer = nt_xent(first * 7, second * 0.3, temperature=0.5)
    assert torch.allclose(nt_xent(first, second, temperature=0.5), longer)


def test_a_single_example_is_refused():
    with pytest.raises(ShapeError, match="M >= 2"):
        nt_xent(torch.randn(1, 3), torch.randn(1, 3), temperature=0.5)

"""The loss of the default descriptor against a slow version."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from ml.errors import ShapeError
from ml.training.tessera.losses import contrastive, near_mask

NONE = torch.zeros(6, 6, dtype=torch.bool)


def _rows(seed: int, count: int = 6) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return functional.normalize(torch.randn(count, 5, generator=generator), dim=1)


def test_only_near_points_of_one_image_are_left_out() -> None:
    xy = torch.tensor([[0.0, 0.0], [2.0, 0.0], [9.0, 0.0], [1.0, 0.0]])
    group = torch.tensor([0, 0, 0, 1])
    expected = torch.zeros(4, 4, dtype=torch.bool)
    expected[0, 1] = expected[1, 0] = True
    assert torch.equal(near_mask(xy, group, radius_px=3.0), expected)


def test_contrastive_agrees_with_a_slow_version() -> None:
    a, b = _rows(2), _rows(3)
    ignored = NONE.clone()
    ignored[1, 2] = ignored[2, 1] = True
    total = 0.0
    for first, second in ((a, b), (b, a)):
        for i in range(6):
            compared = [j for j in range(6) if not ignored[i, j]]
            scores = {j: float(first[i] @ second[j]) / 0.1 for j in compared}
            total += float(np.log(sum(np.exp(s) for s in scores.values()))) - scores[i]
    assert float(contrastive(a, b, ignored, temperature=0.1)) == pytest.approx(total / 12, abs=1e-4)


def test_descriptors_of_two_sizes_raise_an_error() -> None:
    with pytest.raises(ShapeError, match=r"two of \(M, D\), M >= 2, got \(6, 5\), \(3, 5\)"):
        contrastive(_rows(0), _rows(1, 3), NONE, temperature=0.1)
    with pytest.raises(ShapeError, match=r"ignored: expected \(6, 6\), got \(2, 2\)"):
        contrastive(_rows(0), _rows(1), NONE[:2, :2], temperature=0.1)

"""The losses of the default descriptor against slow versions and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from ml.errors import ShapeError
from ml.training.tessera.losses import contrastive, hardest_triplet, near_mask, second_order

NONE = torch.zeros(6, 6, dtype=torch.bool)


def _rows(seed: int, count: int = 6) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return functional.normalize(torch.randn(count, 5, generator=generator), dim=1)


def test_near_points_of_one_image_are_left_out_and_nothing_else() -> None:
    xy = torch.tensor([[0.0, 0.0], [2.0, 0.0], [9.0, 0.0], [1.0, 0.0]])
    group = torch.tensor([0, 0, 0, 1])
    expected = torch.zeros(4, 4, dtype=torch.bool)
    expected[0, 1] = expected[1, 0] = True
    assert torch.equal(near_mask(xy, group, radius_px=3.0), expected)


def test_hardest_triplet_by_hand() -> None:
    a = torch.eye(2)
    b = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    # d = [[0, sqrt(.8)], [sqrt 2, sqrt(.4)]]; the hardest of both rows is sqrt(.8)
    expected = np.mean([max(0, 1 + 0.001 - 0.8**0.5), 1 + 0.4**0.5 - 0.8**0.5])
    found = hardest_triplet(a, b, NONE[:2, :2], margin=1.0)
    assert float(found) == pytest.approx(expected, abs=1e-3)


def test_hardest_triplet_agrees_with_a_slow_version() -> None:
    a, b = _rows(0), _rows(1)
    ignored = NONE.clone()
    ignored[0, 3] = ignored[3, 0] = True
    losses = []
    for i in range(6):
        others = [j for j in range(6) if j != i and not ignored[i, j]]
        from_a = [float((a[i] - b[j]).norm()) for j in others]
        from_b = [float((a[j] - b[i]).norm()) for j in others]
        hardest = min(from_a + from_b)
        losses.append(max(0.0, 0.5 + float((a[i] - b[i]).norm()) - hardest))
    found = float(hardest_triplet(a, b, ignored, margin=0.5))
    assert found == pytest.approx(np.mean(losses), abs=1e-4)


def test_contrastive_agrees_with_a_slow_version() -> None:
    a, b = _rows(2), _rows(3)
    ignored = NONE.clone()
    ignored[1, 2] = ignored[2, 1] = True
    total = 0.0
    for first, second in ((a, b), (b, a)):
        for i in range(6):
            kept = [j for j in range(6) if not ignored[i, j]]
            scores = {j: float(first[i] @ second[j]) / 0.1 for j in kept}
            total += float(np.log(sum(np.exp(s) for s in scores.values()))) - scores[i]
    assert float(contrastive(a, b, ignored, temperature=0.1)) == pytest.approx(total / 12, abs=1e-4)


def test_second_order_is_zero_under_a_common_rotation_of_all_descriptors() -> None:
    a = _rows(4)
    turn, _ = torch.linalg.qr(torch.randn(5, 5, generator=torch.Generator().manual_seed(9)))
    assert float(second_order(a, a @ turn, neighbours=3)) == pytest.approx(0, abs=1e-3)


def test_second_order_by_hand() -> None:
    a = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    b = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    expected = 2.0 - 2.0**0.5  # each row has one neighbour
    assert float(second_order(a, b, neighbours=8)) == pytest.approx(expected, abs=1e-4)


def test_descriptors_of_two_sizes_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"two of \(M, D\), M >= 2, got \(6, 5\), \(3, 5\)"):
        contrastive(_rows(0), _rows(1, 3), NONE, temperature=0.1)
    with pytest.raises(ShapeError, match=r"ignored: expected \(6, 6\), got \(2, 2\)"):
        hardest_triplet(_rows(0), _rows(1), NONE[:2, :2], margin=1.0)

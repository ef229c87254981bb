from __future__ import annotations

import pytest
import torch

from ml.training.common.steps import descend, half_cosine, set_rate


def test_a_step_uses_the_gradient_of_its_loss_only():
    x = torch.tensor([3.0], requires_grad=True)
    optimiser = torch.optim.SGD([x], lr=1.0)
    set_rate(optimiser, 0.25)
    assert descend(optimiser, x.square().sum()) == 9.0
    assert x.item() == 3.0 - 0.25 * 6.0
    descend(optimiser, x.square().sum())
    assert x.item() == 1.5 - 0.25 * 3.0


def test_the_half_cosine_falls_from_one_to_zero():
    assert half_cosine(0) == 1 and half_cosine(1) == 0
    assert half_cosine(30, 60) == pytest.approx(0.5)
    assert half_cosine(0.25) == pytest.approx(0.8535534)

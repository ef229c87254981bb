"""The self-supervised schemes: against slow re-derivations, and what trains."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from ml.errors import UnknownNameError
from ml.training.roi.patches.ssl import SCHEMES, Scheme, vicreg


def slow_vicreg(a, b):
    total = 25 * float(np.mean((a - b) ** 2))
    for x in (a, b):
        deviation = np.sqrt(x.var(axis=0, ddof=1) + 1e-4)
        total += 25 * float(np.maximum(0, 1 - deviation).mean()) / 2
        moment = np.cov(x, rowvar=False)
        total += float((moment**2).sum() - (np.diag(moment) ** 2).sum()) / x.shape[1]
    return total


def test_vicreg_is_what_its_definition_gives():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 0.5, (2, 9, 4))
    found = float(vicreg(torch.from_numpy(a), torch.from_numpy(b)))
    assert found == pytest.approx(slow_vicreg(a, b))


def scheme(name):
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(5, 6), nn.ReLU())
    return Scheme(name, encoder, 6, 8, 4, 0.2)


@pytest.mark.parametrize("name", SCHEMES)
def test_the_encoder_of_every_scheme_learns(name):
    model = scheme(name)
    loss = model(torch.randn(12, 5, generator=torch.Generator().manual_seed(1)))
    loss.backward()
    assert torch.isfinite(loss)
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.encoder.parameters())


def test_byols_target_follows_slowly_and_is_not_trained():
    model = scheme("byol")
    before = model.target[0][0].weight.clone()
    with torch.no_grad():
        model.encoder[0].weight.add_(1.0)
    model.after_step()
    assert torch.allclose(model.target[0][0].weight - before, torch.full_like(before, 0.01))
    assert not any(p.requires_grad for p in model.target.parameters())


def test_an_unknown_scheme_is_refused():
    with pytest.raises(UnknownNameError, match="unknown scheme 'dino'; known: byol"):
        scheme("dino")

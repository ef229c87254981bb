"""The self-supervised loss of the patch encoder."""

from __future__ import annotations

import torch
from torch import nn

from ml.training.roi.patches.ssl import SimClr


def model(label_weight=0.0):
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(5, 6), nn.ReLU())
    return SimClr(
        encoder, dim=6, hidden_dim=8, out_dim=4, temperature=0.2, label_weight=label_weight
    )


def views():
    return torch.randn(12, 5, generator=torch.Generator().manual_seed(1))


def test_training_lowers_the_loss_of_the_encoder():
    simclr = model()
    loss = simclr(views())
    loss.backward()
    assert torch.isfinite(loss)
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in simclr.encoder.parameters())


def test_labels_add_their_loss_and_train_a_separate_head():
    simclr, both = model(0.5), views()
    labels, domains = torch.tensor([0, 0, 1, 1, -1, -1]), torch.arange(6)
    plain, labelled = simclr(both), simclr(both, labels, domains)
    assert float(labelled) > float(plain)
    labelled.backward()
    assert all(p.grad.abs().sum() > 0 for p in simclr.label_head[0].parameters())
    assert torch.equal(simclr(both, torch.full((6,), -1), domains), plain)
    assert not hasattr(model(), "label_head")

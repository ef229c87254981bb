"""The convolutional patch encoder."""

from __future__ import annotations

import torch

from ml.networks.patch_cnn import PatchCnn, PatchCnnConfig

CONFIG = PatchCnnConfig(widths=(4, 6, 8, 10))


def test_the_last_two_stages_side_by_side_at_any_size():
    network = PatchCnn(CONFIG).eval()
    for side in (64, 224, 97):
        assert network(torch.rand(2, 3, side, side)).shape == (2, CONFIG.out_dim)
    assert CONFIG.out_dim == 18


def test_a_patch_does_not_see_its_neighbours_in_the_batch():
    network = PatchCnn(CONFIG).eval()
    x = torch.rand(3, 3, 64, 64)
    assert torch.allclose(network(x)[1], network(x[1:2])[0], atol=1e-6)


def test_the_shipped_size_is_a_few_megabytes():
    count = sum(p.numel() for p in PatchCnn(PatchCnnConfig()).parameters())
    assert 2 * count < 8e6

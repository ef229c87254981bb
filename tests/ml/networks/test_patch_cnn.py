"""The convolutional patch encoder."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from ml.errors import UnknownNameError
from ml.networks.patch_cnn import PatchCnn, PatchCnnConfig, standardise

CONFIG = PatchCnnConfig(widths=(4, 6, 8, 10))


def test_the_readout_has_the_channels_of_the_last_two_stages_at_any_size():
    network = PatchCnn(CONFIG).eval()
    for side in (64, 224, 97):
        assert network(torch.rand(2, 3, side, side)).shape == (2, CONFIG.out_dim)
    assert CONFIG.out_dim == 18


def test_patches_of_a_batch_are_independent():
    network = PatchCnn(CONFIG).eval()
    x = torch.rand(3, 3, 64, 64)
    assert torch.allclose(network(x)[1], network(x[1:2])[0], atol=1e-6)


def test_features_are_the_means_of_the_last_two_stages():
    network = PatchCnn(CONFIG).eval()
    x = torch.rand(1, 3, 64, 64)
    with torch.inference_mode():
        maps = [network.stem(x)]
        for stage in network.stages:
            maps.append(stage(maps[-1]))
        slow = torch.cat([m.mean(dim=(2, 3)) for m in maps[-2:]], dim=1)
        assert torch.allclose(network(x), slow, atol=1e-6)
    assert [m.shape[-1] for m in maps] == [32, 32, 16, 8, 4]


def test_moments_are_the_mean_and_the_deviation_over_all_windows():
    network = PatchCnn(replace(CONFIG, readout="moments")).eval()
    windows = torch.rand(3, 3, 64, 64)
    with torch.inference_mode():
        last = network.stem(windows)
        for stage in network.stages:
            last = stage(last)
        places = last.permute(1, 0, 2, 3).reshape(CONFIG.widths[-1], -1)
        slow = torch.cat([places.mean(dim=1), places.std(dim=1, correction=0)])
        features = network.combine_windows(network(windows)[None])
    assert features.shape == (1, network.config.out_dim) == (1, 20)
    assert torch.allclose(features[0], slow, atol=1e-4)


def test_an_unknown_readout_raises_an_error():
    with pytest.raises(UnknownNameError, match="readout"):
        PatchCnn(replace(CONFIG, readout="sum"))


def test_each_channel_of_each_patch_is_standardised():
    x = standardise(0.5 * torch.rand(4, 3, 16, 16) + 0.3)
    assert torch.allclose(x.mean(dim=(2, 3)), torch.zeros(4, 3), atol=1e-5)
    assert torch.allclose(x.std(dim=(2, 3)), torch.ones(4, 3), atol=1e-5)


def test_standardisation_is_invariant_to_the_strength_of_the_stain():
    od = torch.rand(2, 3, 16, 16)
    channels = torch.tensor([0.5, 1.0, 3.0])[:, None, None]
    assert torch.allclose(standardise(2 * od), standardise(od), atol=1e-4)
    assert torch.allclose(standardise(od * channels + 0.1), standardise(od), atol=1e-4)


def test_the_noise_of_a_blank_patch_is_not_amplified():
    noise = 0.001 * torch.randn(1, 3, 16, 16)
    assert standardise(noise).std() < 0.05
    assert not standardise(torch.zeros(1, 3, 16, 16)).any()


def test_the_shipped_size_is_a_few_megabytes():
    count = sum(p.numel() for p in PatchCnn(PatchCnnConfig()).parameters())
    assert 2 * count < 8e6

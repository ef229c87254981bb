"""The CNN of the triplet loss."""

from __future__ import annotations

import pytest
import torch

from ml.errors import ShapeError
from ml.networks.triplet_cnn import TripletCnn, TripletCnnConfig


def test_forward_equals_a_convolution_a_pooling_and_four_connected_layers():
    net = TripletCnn(TripletCnnConfig())
    assert tuple(net.convolution.weight.shape) == (24, 1, 9, 9)
    assert [(layer.in_features, layer.out_features) for layer in net.connected] == [
        (24 * 16 * 16, 256),
        (256, 256),
        (256, 256),
        (256, 128),
    ]
    assert net(torch.rand(2, 1, 128, 128)).shape == (2, 128)


def test_descriptors_have_unit_length_and_are_invariant_to_gain_and_offset():
    torch.manual_seed(0)
    net = TripletCnn(TripletCnnConfig(patch_px=32, channels=4, hidden=(8, 8, 8), dim=6)).eval()
    patches = torch.rand(5, 1, 32, 32)
    with torch.no_grad():
        rows = net(patches)
        assert torch.allclose(rows.norm(dim=1), torch.ones(5), atol=1e-5)
        assert torch.allclose(net(patches * 0.5 + 0.2), rows, atol=2e-2)
        assert net(torch.zeros(1, 1, 32, 32)).isfinite().all()
        assert net(patches[:0]).shape == (0, 6)


def test_patches_of_another_size_raise_an_error():
    with pytest.raises(ShapeError, match=r"expected \(N, 1, 128, 128\), got \(1, 1, 64, 64\)"):
        TripletCnn(TripletCnnConfig())(torch.zeros(1, 1, 64, 64))

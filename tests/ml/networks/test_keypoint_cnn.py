"""The seven-layer CNN: table 1, and dense evaluation over an image."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from ml.errors import BadInputError, ShapeError
from ml.networks.keypoint_cnn import KeypointCnn, KeypointCnnConfig, standardise

SMALL = (3, 4, 5, 6, 7, 8)


def network(map_px: int = 8, widths: tuple[int, ...] = SMALL) -> KeypointCnn:
    torch.manual_seed(3)
    made = KeypointCnn(KeypointCnnConfig(widths=widths, dim=9, map_px=map_px)).eval()
    for norm in (*made.norms, made.last_norm):  # as after training
        norm.running_mean.uniform_(-0.2, 0.2)
        norm.running_var.uniform_(0.5, 2.0)
        torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
        torch.nn.init.uniform_(norm.bias, -0.2, 0.2)
    return made


def natively(net: Any, plane: torch.Tensor) -> torch.Tensor:
    """Layers 1 to 6 of table 1, with strides and separate norms."""
    for convolution, norm, stride in zip(
        net.convolutions, net.norms, (1, 2, 2, 2, 2, 1), strict=True
    ):
        plane = torch.relu(norm(functional.conv2d(plane, convolution.weight, None, stride, 1)))
    return plane


def test_layers_have_the_sizes_of_table_1() -> None:
    net: Any = KeypointCnn(KeypointCnnConfig())
    shapes = [tuple(c.weight.shape) for c in net.convolutions] + [tuple(net.last.weight.shape)]
    assert shapes == [
        (16, 1, 3, 3),
        (16, 16, 3, 3),
        (32, 16, 3, 3),
        (64, 32, 3, 3),
        (128, 64, 3, 3),
        (128, 128, 3, 3),
        (128, 128, 8, 8),
    ]
    sides = []
    x = torch.zeros(1, 1, 128, 128)
    for convolution, stride in zip(net.convolutions, (1, 2, 2, 2, 2, 1), strict=True):
        x = functional.conv2d(x, convolution.weight, None, stride, 1)
        sides.append(x.shape[-1])
    assert sides == [128, 64, 32, 16, 8, 8]
    assert net.eval()(torch.rand(2, 1, 128, 128)).shape == (2, 128)


def test_forward_equals_the_layers_of_table_1() -> None:
    net = network()
    patches = torch.rand(3, 1, 128, 128)
    with torch.no_grad():
        maps = natively(net, patches)
        slow = torch.stack([(net.last.weight * m).sum(dim=(1, 2, 3)) for m in maps])
        expected = net.last_norm(slow)
        assert torch.allclose(net(patches), expected, atol=1e-5)


def test_batch_norms_use_batch_statistics_in_training() -> None:
    net: Any = network().train()
    with torch.no_grad():
        assert torch.allclose(
            net._layers(torch.ones(2, 1, 16, 16), map_px=16).isfinite().float().mean(),
            torch.tensor(1.0),
        )
        before = net.norms[0].running_mean.clone()
        net._layers(torch.rand(2, 1, 32, 32), map_px=16)
    assert not torch.equal(before, net.norms[0].running_mean)


@pytest.mark.parametrize("map_px", [4, 8, 16])
def test_shared_layers_equal_a_window_with_its_surroundings(map_px: Any) -> None:
    net = network(map_px)
    plane = torch.rand(1, 1, 288, 320)
    corner_x, corner_y = 48, 64  # a multiple of 16 each: every map has a column there
    xy = torch.tensor([[corner_x + 63.5, corner_y + 63.5]])
    with torch.no_grad():
        descriptors = net.at_points(net.shared(plane), xy)
        around = plane[:, :, corner_y - 32 : corner_y + 160, corner_x - 32 : corner_x + 160]
        taps = natively(net, around)[:, :, 2:10, 2:10]
        expected = net.last_norm((taps * net.last.weight).sum(dim=(1, 2, 3))[None])
    assert torch.allclose(descriptors, expected, atol=1e-4)


def test_taps_between_columns_are_interpolated() -> None:
    net = network(8)
    ramp = torch.arange(40.0).expand(1, SMALL[-1], 36, 40)
    taps = net._taps(ramp, torch.tensor([[150.0, 140.0]]))
    assert taps.shape == (SMALL[-1], 1, 8, 8)
    expected = (150.0 - 63.5 + 16 * torch.arange(8)) / 8
    assert torch.allclose(taps[0, 0, 0], expected, atol=1e-4)


def test_no_points_give_no_rows() -> None:
    net = network()
    assert net.at_points(net.shared(torch.rand(1, 1, 64, 64)), torch.zeros(0, 2)).shape == (0, 9)


def test_invalid_sizes_raise_an_error() -> None:
    with pytest.raises(BadInputError, match=r"map_px: .*5"):
        KeypointCnn(KeypointCnnConfig(map_px=5))
    with pytest.raises(BadInputError, match=r"widths: .*6 .*2"):
        KeypointCnn(KeypointCnnConfig(widths=(4, 4)))
    with pytest.raises(ShapeError, match=r"expected \(N, 1, 128, 128\), got \(1, 1, 64, 64\)"):
        network()(torch.zeros(1, 1, 64, 64))
    with pytest.raises(ShapeError, match=r"multiples of 8.*\(1, 1, 60, 64\)"):
        network().shared(torch.zeros(1, 1, 60, 64))


def test_a_flat_patch_becomes_zero() -> None:
    patches = torch.stack([torch.full((1, 8, 8), 0.5), torch.rand(1, 8, 8)])
    normal = standardise(patches)
    assert torch.equal(normal[0], torch.zeros(1, 8, 8))
    assert abs(float(normal[1].mean())) < 1e-5
    assert abs(float(normal[1].std()) - 1) < 0.02

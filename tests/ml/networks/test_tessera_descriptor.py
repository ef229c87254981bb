"""The descriptor network and its invariance to rotation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ml.errors import ShapeError
from ml.networks.tessera_descriptor import TesseraConfig, TesseraNet

TINY = TesseraConfig(rings=8, angles=16, widths=(4, 4, 4, 8, 8, 8), dim=16)


def _network(config: TesseraConfig = TINY) -> TesseraNet:
    torch.manual_seed(0)
    return TesseraNet(config).eval()


def test_descriptors_are_unit_rows_of_the_configured_length() -> None:
    rows = _network()(torch.randn(5, 2, 8, 16))
    assert rows.shape == (5, 16)
    assert torch.allclose(rows.norm(dim=1), torch.ones(5), atol=1e-5)


def test_descriptors_are_invariant_to_rotation_by_multiples_of_the_stride() -> None:
    network, x = _network(), torch.randn(3, 2, 8, 16)
    turned = torch.roll(x, 4, dims=3)
    assert torch.allclose(network(turned), network(x), atol=1e-5)


def test_a_mirrored_patch_has_another_descriptor() -> None:
    network, x = _network(), torch.randn(3, 2, 8, 16)
    assert (network(x.flip(3)) - network(x)).norm(dim=1).min() > 1e-2


def test_invariants_equal_the_spectrum_without_the_phase_of_the_reference() -> None:
    network = _network()
    features = torch.randn(2, 8, 4)
    array = network.invariants(features).detach().numpy().reshape(2, 8, 3)
    spectrum = np.fft.fft(features.numpy(), axis=2) / 2.0  # orthonormal over 4 samples
    weight = network.reference.detach().numpy()
    for row in range(2):
        first = np.sqrt(2.0) * spectrum[row, :, 1]
        reference = (weight[0] * first).sum()
        turned = first * np.conj(reference) / np.sqrt(abs(reference) ** 2 + 1e-4)
        np.testing.assert_allclose(array[row, :, 0], spectrum[row, :, 0].real, atol=1e-5)
        np.testing.assert_allclose(array[row, :, 1], turned.real, atol=1e-5)
        np.testing.assert_allclose(array[row, :, 2], turned.imag, atol=1e-5)


def test_the_folded_network_gives_equal_descriptors() -> None:
    network, x = TesseraNet(TINY).train(), torch.randn(40, 2, 8, 16)
    network(x)  # updates the batch norms
    folded = network.folded()
    assert network.training and not folded.training
    assert torch.allclose(folded(x), network.eval()(x), atol=1e-5)


def test_an_empty_patch_has_a_finite_descriptor() -> None:
    assert torch.isfinite(_network()(torch.zeros(2, 2, 8, 16))).all()


def test_patches_of_another_shape_raise_an_error() -> None:
    with pytest.raises(ShapeError, match=r"\(B, 2, 8, 16\), got \(1, 1, 8, 16\)"):
        _network()(torch.zeros(1, 1, 8, 16))


def test_sizes_that_are_no_multiples_of_four_raise_an_error() -> None:
    with pytest.raises(ShapeError, match=r"4.*10 x 16"):
        TesseraNet(TesseraConfig(rings=10, angles=16))


@pytest.mark.parametrize("rings", [4, 8, 12, 20])
def test_the_last_layer_covers_all_rings(rings: int) -> None:
    config = TesseraConfig(rings=rings, angles=16, widths=TINY.widths, dim=16)
    network = _network(config)
    assert network.layers(torch.randn(1, 2, rings, 16)).shape == (1, 8, 1, 4)

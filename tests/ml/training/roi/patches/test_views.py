"""Views of tissue: two of one place, and colours that change without the structure."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from ml.networks.patch_cnn import standardise
from ml.roi.stain.deconvolution import optical_density
from ml.training.roi.patches.blocks import make_block
from ml.training.roi.patches.views import (
    ViewConfig,
    _mixing,
    draw_pair,
    draw_stains,
    restained,
)

STILL = ViewConfig(
    crop_px=32,
    mpp=(1.0, 1.0),
    zoom=0.0,
    shift=0.0,
    swap=0.0,
    mix=0.0,
    gain=0.0,
    gamma=0.0,
    grey=0.0,
    blur=0.0,
    jpeg=0.0,
    noise=0.0,
)
EYE = np.eye(3, dtype=np.float32)


def with_view(**values):
    return dataclasses.replace(STILL, **values)


@pytest.fixture(scope="module")
def places():
    """A block whose pixels say where they are: red is x, green is y."""
    y, x = np.mgrid[:508, :508]
    pixels = np.stack([x // 4 + 20, y // 4 + 20, np.full_like(x, 60)], axis=2).astype(np.uint8)
    return make_block(pixels, 0.5)


def middle(view):
    """Position of a view's middle in its block, from the colours."""
    return (view[14:18, 14:18, :2].reshape(-1, 2).mean(axis=0) - 20) * 4


@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_the_two_views_are_of_one_place(places, shift):
    config = with_view(shift=shift, mpp=(1.0, 2.0), zoom=0.3)
    for seed in range(20):
        first, second = draw_pair(places, np.random.default_rng(seed), config)
        assert first.shape == second.shape == (32, 32, 3) and first.dtype == np.uint8
        # At 2 um a crop covers 128 px of the block; zoomed, up to 173. Each may be drawn half away.
        reach = 8 + (shift * 173 if shift else 0)
        # Clipping to the block may move the larger of two views inwards.
        assert np.abs(middle(first) - middle(second)).max() < reach + 24


def test_a_view_covers_its_size_in_microns(places):
    for mpp, px in ((1.0, 2.0), (2.0, 4.0)):
        config = with_view(mpp=(mpp, mpp))
        view = draw_pair(places, np.random.default_rng(0), config)[0].astype(float)
        slopes = [np.diff(view[..., c], axis=axis)[4:-4, 4:-4] for c in (0, 1) for axis in (0, 1)]
        per_pixel = 4 * np.hypot(slopes[0].mean(), slopes[1].mean())
        assert per_pixel == pytest.approx(px, rel=0.1)


def test_a_view_fits_into_a_small_block():
    y, x = np.mgrid[:96, :96]
    block = make_block(np.stack([x, y, x * 0 + 60], axis=2).astype(np.uint8), 0.5)
    config = with_view(mpp=(3.0, 3.0))
    view = draw_pair(block, np.random.default_rng(0), config)[0].astype(float)
    spread = np.hypot(np.ptp(view[..., 0]), np.ptp(view[..., 1]))
    assert spread < 0.67 * 96 * 2**0.5 * 1.45


def test_a_block_is_not_enlarged_beyond_the_limit(places):
    """At 1.0 um a block allows examples of at least 0.8 um: all of those that reach up to 0.8."""
    config = with_view(mpp=(0.2, 0.8), min_step=0.8)
    block = dataclasses.replace(places, mpp=1.0)
    view = draw_pair(block, np.random.default_rng(0), config)[0].astype(float)
    spread = np.hypot(np.ptp(view[..., 0]), np.ptp(view[..., 1]))
    assert spread > 32 * 0.8 / 4  # the colours change every four pixels
    assert config.max_block_mpp == pytest.approx(1.0)
    assert ViewConfig().max_block_mpp == np.inf


def test_the_same_seed_draws_the_same(places):
    config = ViewConfig(crop_px=32)
    first, again = (draw_pair(places, np.random.default_rng(5), config) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.fixture(scope="module")
def views(tissue):
    return [tissue(32, 32, seed=seed, nuclei_per_mpx=9000) for seed in range(6)]


def restain(views, config, others=EYE[None], seed=0):
    rng = np.random.default_rng(seed)
    change = draw_stains([EYE] * len(views), others, rng, config)
    return restained(torch.from_numpy(np.stack(views)), change)


def test_without_augmentation_a_view_is_the_input_of_the_encoder(views):
    output = restain(views, STILL)
    od = torch.from_numpy(optical_density(np.stack(views))).permute(0, 3, 1, 2)
    assert output.shape == (6, 3, 32, 32) and output.dtype == torch.float32
    assert torch.allclose(output, standardise(od).clamp(-6, 6), atol=1e-4)


def test_another_colour_leaves_the_structure(views):
    """Densities mixed and bent: where it was dense before it is dense after."""
    plain = restain(views, STILL).mean(dim=1).flatten(1)
    for config in (with_view(mix=0.1), with_view(gamma=0.2)):
        array = restain(views, config).mean(dim=1).flatten(1)
        assert not torch.allclose(array, plain, atol=1e-2)
        for first, other in zip(plain, array, strict=True):
            assert abs(float(torch.corrcoef(torch.stack([first, other]))[0, 1])) > 0.9


def root(moment):
    value, vector = np.linalg.eigh(moment)
    return (vector * np.sqrt(value)) @ vector.T


def test_colours_are_exchanged_for_those_of_another_patient():
    rng = np.random.default_rng(0)
    od = np.abs(rng.normal(0.4, 0.1, (2000, 3))).astype(np.float64)
    root_of_patient = root(od.T @ od / len(od))
    other = root(np.array([[0.3, 0.1, 0.1], [0.1, 0.5, 0.2], [0.1, 0.2, 0.2]]))
    moved = od @ np.linalg.solve(root_of_patient, other)
    assert np.allclose(moved.T @ moved / len(od), other @ other, atol=1e-6)
    config = with_view(swap=1.0)
    mixture = _mixing(
        root_of_patient, other[None].astype(np.float32), np.random.default_rng(0), config
    )
    assert np.allclose(mixture, np.linalg.solve(root_of_patient, other), atol=1e-4)


def test_standardising_removes_only_the_strength(views):
    plain, strong = restain(views, STILL), restain(views, with_view(gain=0.2))
    assert torch.allclose(plain, strong, atol=0.3)
    assert (plain - strong).abs().mean() < 0.02


def test_a_grey_view_is_equal_in_all_channels(views):
    output = restain(views, with_view(grey=1.0))
    assert torch.allclose(output[:, 0], output[:, 1], atol=1e-5)
    assert torch.allclose(output[:, 0], output[:, 2], atol=1e-5)


def test_noise_stays_below_its_bound(views):
    plain, noisy = restain(views, STILL), restain(views, with_view(noise=0.06))
    assert 0 < (noisy - plain).std() < 0.06


def test_no_value_is_infinite(views):
    blank = [np.full((32, 32, 3), 255, np.uint8), np.zeros((32, 32, 3), np.uint8)]
    output = restain([*views, *blank], ViewConfig(crop_px=32))
    assert torch.isfinite(output).all() and output.abs().max() <= 6

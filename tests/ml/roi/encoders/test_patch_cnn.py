"""The convolutional patch encoder: windows, invariance to stain, and its file."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from ml.errors import WeightsError
from ml.networks.patch_cnn import PatchCnn, PatchCnnConfig
from ml.roi.encoders.patch_cnn import (
    ARCHITECTURE,
    GPU_BATCH,
    PatchCnnEncoder,
    _as_images,
    _windows,
    load_patch_cnn,
    save_patch_cnn,
)
from ml.roi.stain.deconvolution import WHITE, optical_density, published_stains

SIZES = PatchCnnConfig(widths=(4, 6, 8, 10))


@pytest.fixture
def cnn():
    torch.manual_seed(0)
    return PatchCnnEncoder(PatchCnn(SIZES))


def with_densities(image, factors):
    """The image with each channel's optical density multiplied."""
    pixels = (WHITE + 1) * 10.0 ** -(optical_density(image) * np.array(factors)) - 1
    return np.clip(np.round(pixels), 0, 255).astype(np.uint8)


def images_of(patch):
    """Input windows of the network for a patch."""
    return _as_images(torch.from_numpy(_windows(patch)))


@pytest.mark.parametrize(
    ("height", "width", "count"),
    [(224, 224, 4), (128, 128, 1), (224, 128, 2), (30, 50, 1), (300, 224, 6)],
)
def test_windows_cover_a_patch_of_any_size(tissue, height, width, count):
    windows = images_of(tissue(height, width))
    assert windows.shape == (count, 3, 64, 64) and windows.dtype == torch.float32
    assert torch.allclose(windows.mean(dim=(2, 3)), torch.zeros(count, 3), atol=1e-4)


def test_windows_reach_both_edges_of_a_patch(tissue):
    patch = tissue(224, 224, seed=2)
    assert np.array_equal(_windows(patch)[-1], _windows(patch[96:, 96:])[-1])


def test_the_vector_of_a_patch_is_the_mean_of_its_windows(cnn, tissue):
    patch = tissue(224, 224)
    with torch.inference_mode():
        rows = [cnn.network(window[None])[0].numpy() for window in images_of(patch)]
    features = cnn.encode([patch], published_stains(patch))[0]
    assert np.allclose(features, np.mean(rows, axis=0), atol=1e-5)


def test_the_vector_hardly_depends_on_strength_and_hue_of_the_stain(cnn, tissue):
    # Strongly stained, as nearly blank patches are not fully standardised, see ``standardise``.
    patch, other = (
        with_densities(tissue(224, 224, seed=1, nuclei_per_mpx=count), (2, 2, 2))
        for count in (1500, 300)
    )
    stains = published_stains(patch)
    plain, pale, pink, far = cnn.encode(
        [
            patch,
            with_densities(patch, (0.7, 0.7, 0.7)),
            with_densities(patch, (0.8, 1.3, 0.9)),
            other,
        ],
        stains,
    )
    assert np.linalg.norm(plain - pale) < 0.2 * np.linalg.norm(plain - far)
    assert np.linalg.norm(plain - pink) < 0.2 * np.linalg.norm(plain - far)


def test_weights_round_trip_in_half_precision(cnn, tissue, tmp_path):
    path = tmp_path / "p.safetensors"
    save_patch_cnn(path, name="mine", version="1", network=cnn.network)
    patch = tissue(224, 224)
    stains = published_stains(patch)
    features = load_patch_cnn(path).encode([patch], stains)
    assert np.allclose(features, cnn.encode([patch], stains), atol=1e-2)
    other = load_patch_cnn(path, readout="moments")
    assert other.dim == 20 and other.encode([patch], stains).shape == (1, 20)
    path.write_bytes(path.read_bytes()[:99])
    with pytest.raises(WeightsError, match="safetensors"):
        load_patch_cnn(path)


def test_weights_of_another_version_raise_an_error(cnn, tmp_path, monkeypatch):
    path = tmp_path / "old.safetensors"
    monkeypatch.setattr("ml.roi.encoders.patch_cnn.ARCHITECTURE", "patch-cnn")
    save_patch_cnn(path, name="old", version="1", network=cnn.network)
    monkeypatch.undo()
    with pytest.raises(WeightsError, match=f"'patch-cnn', expected '{ARCHITECTURE}'"):
        load_patch_cnn(path)


def test_batches_in_half_precision_agree_with_the_reference(cnn, tissue, fast):
    patches = [tissue(224, 224, seed=seed) for seed in range(5)]
    stains = published_stains(patches[0])
    reference = cnn.encode(patches, stains)
    quick = PatchCnnEncoder(copy.deepcopy(cnn.network), compute=fast)
    assert (cnn.batch, quick.batch) == (1, GPU_BATCH)
    off = np.linalg.norm(quick.encode(patches, stains) - reference, axis=1)
    assert (off < 0.02 * np.linalg.norm(reference, axis=1)).all()


def test_on_a_cpu_a_vector_does_not_depend_on_other_patches(cnn, tissue):
    patches = [tissue(224, 224, seed=seed) for seed in range(3)]
    stains = published_stains(patches[0])
    together = cnn.encode(patches, stains)
    assert np.array_equal(together[1], cnn.encode(patches[1:2], stains)[0])

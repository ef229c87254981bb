"""The texton encoder and its file."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import WeightsError
from ml.networks.textons import TextonConfig
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.encoders.registry import make_patch_encoder
from ml.roi.encoders.textons import (
    TextonEncoder,
    channel_jets,
    contrast_jets,
    load_textons,
    save_textons,
)
from ml.roi.stain.deconvolution import published_stains
from ml.training.roi.textons import TextonFitConfig, fit_bank

SMALL = TextonConfig(words=8, scales_px=(1.0, 2.0), stride_px=4)


@pytest.fixture
def encoder(tissue):
    jets = contrast_jets(tissue(224, 224), SMALL)
    return TextonEncoder(fit_bank(jets, SMALL, fit=TextonFitConfig(rounds=4), seed=0), SMALL)


def test_a_texton_encoder_implements_the_protocol_with_unit_vectors(encoder, tissue):
    patches = [tissue(224, 224, seed=seed) for seed in (1, 2)]
    features = encoder.encode(patches, published_stains(patches[0]))
    assert isinstance(encoder, PatchEncoder)
    assert features.shape == (2, 8) and features.dtype == np.float32
    assert np.square(features).sum(axis=1) == pytest.approx([1, 1], abs=1e-5)


def test_a_vector_does_not_depend_on_other_patches_or_stains(encoder, tissue):
    patches = [tissue(224, 224, seed=seed) for seed in (1, 2)]
    together = encoder.encode(patches, published_stains(patches[0]))
    alone = encoder.encode(patches[1:], published_stains(patches[1]))
    assert np.array_equal(together[1], alone[0])


def test_measurements_have_two_channels_per_scale(tissue):
    jets = contrast_jets(tissue(224, 224), SMALL)
    assert jets.shape == (52 * 52, 2 * 4 * 2) == (52 * 52, SMALL.jet_dim)


def test_a_dictionary_round_trips_through_a_file(encoder, tissue, tmp_path):
    save_textons(tmp_path / "words.safetensors", encoder, version="1")
    again = load_textons(tmp_path / "words.safetensors")
    patch = tissue(224, 224, seed=5)
    assert again.config == SMALL
    assert np.array_equal(again.histogram(patch), encoder.histogram(patch))


def test_another_file_raises_an_error(tmp_path):
    with pytest.raises(WeightsError, match="weights file"):
        load_textons(tmp_path / "words.safetensors")


def test_the_registry_loads_textons_with_a_dictionary(encoder):
    assert make_patch_encoder("local-textons-1", textons=encoder) is encoder
    with pytest.raises(WeightsError, match="local-textons-1"):
        make_patch_encoder("local-textons-1")


def test_textons_are_nearly_invariant_to_rotation(encoder, tissue):
    patch, other = tissue(224, 224, seed=6), tissue(224, 224, seed=7, nuclei_per_mpx=400)
    turned = np.ascontiguousarray(np.rot90(patch))
    result, again, far = (encoder.histogram(image) for image in (patch, turned, other))
    assert np.linalg.norm(result - again) < 0.3 * np.linalg.norm(result - far)


def test_only_points_inside_the_mask_are_counted(encoder, tissue):
    patch = tissue(224, 224, seed=6)
    left = np.zeros((224, 224), np.uint8)
    left[:, :112] = 1
    assert not np.allclose(encoder.histogram(patch, left), encoder.histogram(patch))
    nothing = np.zeros((224, 224), np.uint8)
    assert np.array_equal(encoder.histogram(patch, nothing), encoder.histogram(patch))


def test_a_flat_channel_has_only_a_value():
    jets = channel_jets(np.full((64, 64, 2), 0.5, np.float32), SMALL).reshape(-1, 2, 4, 2)
    assert np.allclose(jets[:, :, 0], 0.5, atol=1e-6)
    assert np.allclose(jets[:, :, 1:], 0, atol=1e-6)

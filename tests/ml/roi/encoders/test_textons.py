"""Textons of locally normalised stains: an encoder of patches, and its file."""

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
from ml.roi.stain import fixed_stains
from ml.training.roi.textons import TextonFitConfig, fit_bank

SMALL = TextonConfig(words=8, scales_px=(1.0, 2.0), stride_px=4)


@pytest.fixture
def encoder(tissue):
    jets = contrast_jets(tissue(224, 224), SMALL)
    return TextonEncoder(fit_bank(jets, SMALL, fit=TextonFitConfig(rounds=4), seed=0), SMALL)


def test_it_is_a_patch_encoder_of_unit_vectors(encoder, tissue):
    patches = [tissue(224, 224, seed=seed) for seed in (1, 2)]
    found = encoder.encode(patches, fixed_stains(patches[0]))
    assert isinstance(encoder, PatchEncoder)
    assert found.shape == (2, 8) and found.dtype == np.float32
    assert np.square(found).sum(axis=1) == pytest.approx([1, 1], abs=1e-5)


def test_a_patch_has_the_same_vector_in_any_company_and_under_any_stains(encoder, tissue):
    patches = [tissue(224, 224, seed=seed) for seed in (1, 2)]
    together = encoder.encode(patches, fixed_stains(patches[0]))
    alone = encoder.encode(patches[1:], fixed_stains(patches[1]))
    assert np.array_equal(together[1], alone[0])


def test_measurements_are_two_channels_at_each_scale(tissue):
    jets = contrast_jets(tissue(224, 224), SMALL)
    assert jets.shape == (52 * 52, 2 * 4 * 2) == (52 * 52, SMALL.jet_dim)


def test_a_dictionary_comes_back_from_its_file(encoder, tissue, tmp_path):
    save_textons(tmp_path / "words.safetensors", encoder, version="1")
    again = load_textons(tmp_path / "words.safetensors")
    patch = tissue(224, 224, seed=5)
    assert again.config == SMALL
    assert np.array_equal(again.histogram(patch), encoder.histogram(patch))


def test_another_file_is_refused(tmp_path):
    with pytest.raises(WeightsError, match="no such weights file"):
        load_textons(tmp_path / "words.safetensors")


def test_the_registry_knows_it_once_its_dictionary_is_given(encoder):
    assert make_patch_encoder("local-textons-1", textons=encoder) is encoder
    with pytest.raises(WeightsError, match="local-textons-1: its weights are missing"):
        make_patch_encoder("local-textons-1")


def test_a_turned_patch_has_nearly_the_same_textons(encoder, tissue):
    patch, other = tissue(224, 224, seed=6), tissue(224, 224, seed=7, nuclei_per_mpx=400)
    turned = np.ascontiguousarray(np.rot90(patch))
    found, again, far = (encoder.histogram(image) for image in (patch, turned, other))
    assert np.linalg.norm(found - again) < 0.3 * np.linalg.norm(found - far)


def test_only_points_inside_the_mask_count(encoder, tissue):
    patch = tissue(224, 224, seed=6)
    left = np.zeros((224, 224), np.uint8)
    left[:, :112] = 1
    assert not np.allclose(encoder.histogram(patch, left), encoder.histogram(patch))
    nothing = np.zeros((224, 224), np.uint8)
    assert np.array_equal(encoder.histogram(patch, nothing), encoder.histogram(patch))


def test_a_flat_channel_has_its_value_and_no_shape():
    jets = channel_jets(np.full((64, 64, 2), 0.5, np.float32), SMALL).reshape(-1, 2, 4, 2)
    assert np.allclose(jets[:, :, 0], 0.5, atol=1e-6)
    assert np.allclose(jets[:, :, 1:], 0, atol=1e-6)

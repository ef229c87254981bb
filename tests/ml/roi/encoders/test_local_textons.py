"""Textons of locally normalised stains: an encoder of patches, and its file."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import WeightsError
from ml.networks.textons import LocalTextonConfig
from ml.roi.encoders.local_textons import (
    LocalTextonEncoder,
    contrast_jets,
    load_local_textons,
    save_local_textons,
)
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.encoders.registry import make_patch_encoder
from ml.roi.stain import fixed_stains
from ml.training.roi.textons import TextonFitConfig, fit_textons

SMALL = LocalTextonConfig(words=8, scales_px=(1.0, 2.0), stride_px=4)


@pytest.fixture
def encoder(tissue):
    jets = contrast_jets(tissue(224, 224), SMALL)
    return LocalTextonEncoder(
        fit_textons(jets, SMALL, fit=TextonFitConfig(rounds=4), seed=0), SMALL
    )


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
    save_local_textons(tmp_path / "words.safetensors", encoder, version="1")
    again = load_local_textons(tmp_path / "words.safetensors")
    patch = tissue(224, 224, seed=5)
    assert again.config == SMALL
    assert np.array_equal(again.histogram(patch), encoder.histogram(patch))


def test_another_file_is_refused(tmp_path):
    with pytest.raises(WeightsError, match="no such weights file"):
        load_local_textons(tmp_path / "words.safetensors")


def test_the_registry_knows_it_once_its_dictionary_is_given(encoder):
    assert make_patch_encoder("local-textons-1", local_textons=encoder) is encoder
    with pytest.raises(WeightsError, match="local-textons-1: its weights are not given"):
        make_patch_encoder("local-textons-1")

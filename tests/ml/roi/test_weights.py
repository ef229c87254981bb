"""Weights say what they are; those of anything else are refused in one line."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from ml.errors import WeightsError
from ml.networks.gcn import GcnConfig, RoiGcn
from ml.networks.patch_cnn import PatchCnn, PatchCnnConfig
from ml.roi import encoder_from_file
from ml.roi.config import EncoderConfig
from ml.roi.encoders.patch_cnn import PatchCnnEncoder
from ml.roi.encoders.registry import make_patch_encoder
from ml.roi.weights import ARCHITECTURE, save_encoder


@pytest.fixture
def weights(tmp_path):
    torch.manual_seed(0)
    config = EncoderConfig()
    path = tmp_path / "w.safetensors"
    save_encoder(path, name="mine", version="2", config=config, network=RoiGcn(config.network))
    return path


def rewrite(path, **metadata):
    config = EncoderConfig()
    known = {
        "architecture": ARCHITECTURE,
        "name": "mine",
        "version": "2",
        "config": json.dumps(dataclasses.asdict(config)),
    }
    save_file(RoiGcn(config.network).state_dict(), path, metadata={**known, **metadata})
    return path


def test_what_was_saved_is_loaded(weights):
    encoder = encoder_from_file(weights)
    assert (encoder.name, encoder.version, encoder.kind) == ("mine", "2", "histology")
    assert encoder.dim == GcnConfig().embedding_dim


def test_our_own_patch_network_travels_in_the_same_file(tmp_path, tissue):
    torch.manual_seed(0)
    sizes = PatchCnnConfig(widths=(4, 6, 8, 10))
    patches = make_patch_encoder("classical-1+patch-cnn-2", cnn=PatchCnnEncoder(PatchCnn(sizes)))
    config = EncoderConfig(
        features=patches.name, patch_cnn=sizes, network=GcnConfig(in_dim=patches.dim)
    )
    path = tmp_path / "own.safetensors"
    save_encoder(
        path,
        name="own",
        version="1",
        config=config,
        network=RoiGcn(config.network),
        patches=patches,
    )
    first, second = encoder_from_file(path), encoder_from_file(path)
    assert first.patches.name == "classical-1+patch-cnn-2" and first.patches.dim == patches.dim
    image = tissue(500, 500)
    assert np.array_equal(first.embed(image), second.embed(image))


def test_other_weights_have_another_hash(weights, tmp_path):
    torch.manual_seed(1)
    config = EncoderConfig()
    other = tmp_path / "other.safetensors"
    save_encoder(other, name="mine", version="2", config=config, network=RoiGcn(config.network))
    assert encoder_from_file(weights).config_hash != encoder_from_file(other).config_hash
    assert encoder_from_file(weights).config_hash == encoder_from_file(weights).config_hash


def test_weights_of_another_architecture_are_refused(weights):
    rewrite(weights, architecture="triplet-cnn")
    with pytest.raises(WeightsError, match="architecture 'triplet-cnn', expected 'roi-gcn'"):
        encoder_from_file(weights)


def test_weights_of_other_features_are_refused(weights):
    config = dataclasses.replace(EncoderConfig(), features="classical-0")
    rewrite(weights, config=json.dumps(dataclasses.asdict(config)))
    with pytest.raises(WeightsError, match="unknown patch encoder 'classical-0'"):
        encoder_from_file(weights)


def test_tensors_of_another_size_are_refused(weights):
    config = EncoderConfig(network=dataclasses.replace(GcnConfig(), out_dim=32))
    rewrite(weights, config=json.dumps(dataclasses.asdict(config)))
    with pytest.raises(WeightsError, match=r"expected \(32,.*got \(64,"):
        encoder_from_file(weights)


def test_an_unknown_configuration_key_is_refused(weights):
    rewrite(weights, config='{"depth": 3}')
    with pytest.raises(WeightsError, match="unknown key 'depth'"):
        encoder_from_file(weights)


def test_a_file_that_is_no_weights_is_refused(weights):
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(WeightsError, match="not a safetensors file, or damaged"):
        encoder_from_file(weights)
    with pytest.raises(WeightsError, match="no such weights file"):
        encoder_from_file(weights.parent / "nothing.safetensors")

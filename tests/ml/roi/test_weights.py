"""Weights files of graph encoders, and errors."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from ml.errors import WeightsError
from ml.files import WEIGHTS_FOLDER
from ml.networks.gcn import GcnConfig, RoiGcn
from ml.networks.patch_cnn import PatchCnn, PatchCnnConfig
from ml.roi.config import EncoderConfig
from ml.roi.encoders.patch_cnn import PatchCnnEncoder
from ml.roi.encoders.registry import make_patch_encoder
from ml.roi.weights import ARCHITECTURE, read_graph_encoder, save_encoder


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


def test_an_encoder_round_trips_through_a_file(weights):
    encoder = read_graph_encoder(weights)
    assert (encoder.name, encoder.version, encoder.kind) == ("mine", "2", "histology")
    assert encoder.dim == GcnConfig().embedding_dim


def test_the_patch_network_is_stored_in_the_same_file(tmp_path, tissue):
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
    first, second = read_graph_encoder(path), read_graph_encoder(path)
    assert first.patches.name == "classical-1+patch-cnn-2" and first.patches.dim == patches.dim
    image = tissue(500, 500)
    assert np.array_equal(first.embed(image), second.embed(image))


def test_other_weights_have_another_hash(weights, tmp_path):
    torch.manual_seed(1)
    config = EncoderConfig()
    other = tmp_path / "other.safetensors"
    save_encoder(other, name="mine", version="2", config=config, network=RoiGcn(config.network))
    assert read_graph_encoder(weights).config_hash != read_graph_encoder(other).config_hash
    assert read_graph_encoder(weights).config_hash == read_graph_encoder(weights).config_hash


def test_weights_of_another_architecture_raise_an_error(weights):
    rewrite(weights, architecture="triplet-cnn")
    with pytest.raises(WeightsError, match=r"'triplet-cnn'.*'roi-gcn'"):
        read_graph_encoder(weights)


def test_weights_of_other_features_raise_an_error(weights):
    config = dataclasses.replace(EncoderConfig(), features="classical-0")
    rewrite(weights, config=json.dumps(dataclasses.asdict(config)))
    with pytest.raises(WeightsError, match="'classical-0'"):
        read_graph_encoder(weights)


def test_tensors_of_another_size_raise_an_error(weights):
    config = EncoderConfig(network=dataclasses.replace(GcnConfig(), out_dim=32))
    rewrite(weights, config=json.dumps(dataclasses.asdict(config)))
    with pytest.raises(WeightsError, match=r"expected \(32,.*got \(64,"):
        read_graph_encoder(weights)


def test_an_unknown_configuration_key_raises_an_error(weights):
    rewrite(weights, config='{"depth": 3}')
    with pytest.raises(WeightsError, match="'depth'"):
        read_graph_encoder(weights)


def test_a_file_without_weights_raises_an_error(weights):
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(WeightsError, match="safetensors"):
        read_graph_encoder(weights)
    with pytest.raises(WeightsError, match="weights file"):
        read_graph_encoder(weights.parent / "nothing.safetensors")


def test_shipped_weights_are_at_most_30_mb():
    sizes = {path.name: path.stat().st_size for path in WEIGHTS_FOLDER.glob("*.safetensors")}
    assert "roi-default.safetensors" in sizes
    assert {name: size for name, size in sizes.items() if size > 30e6} == {}

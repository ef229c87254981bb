"""Weights file of the key point encoder."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from shapely.geometry import box

from ml.errors import WeightsError
from ml.networks.vlad import Vlad, VladConfig
from ml.networks.weightsfile import write_tensors
from ml.roi.keypoints.encoder import KeypointEncoderConfig
from ml.roi.keypoints.weights import (
    ARCHITECTURE,
    load_keypoint_encoder,
    save_keypoint_encoder,
)

CONFIG = KeypointEncoderConfig(side_px=96, vlad=VladConfig(words=4, out_dim=16))


def network(seed=0):
    generator = torch.Generator().manual_seed(seed)
    made = Vlad(CONFIG.vlad)
    for name in ("words", "mean", "projection"):
        buffer = getattr(made, name)
        buffer.copy_(0.1 * torch.randn(buffer.shape, generator=generator))
    return made


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "e.safetensors"
    save_keypoint_encoder(path, name="mine", version="3", config=CONFIG, network=network())
    return path


def test_an_encoder_round_trips_through_a_file(weights, mucosa):
    encoder = load_keypoint_encoder(weights)
    assert (encoder.name, encoder.version, encoder.kind) == ("mine", "3", "endoscopy")
    assert encoder.config == CONFIG and encoder.dim == 16
    image, again = mucosa(200, 200), load_keypoint_encoder(weights)
    polygon = box(30, 30, 170, 170)
    assert np.array_equal(encoder.embed(image, polygon), again.embed(image, polygon))
    assert encoder.config_hash == again.config_hash


def test_weights_are_stored_in_half_precision(weights):
    assert weights.stat().st_size < 2.2 * sum(b.numel() for b in network().buffers()) + 2000


def test_other_weights_have_another_hash(weights, tmp_path):
    other = tmp_path / "o.safetensors"
    save_keypoint_encoder(other, name="mine", version="3", config=CONFIG, network=network(1))
    first, two = load_keypoint_encoder(weights), load_keypoint_encoder(other)
    assert first.config_hash != two.config_hash


def test_a_damaged_or_missing_file_raises_an_error(weights):
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(WeightsError, match=r"e\.safetensors"):
        load_keypoint_encoder(weights)
    with pytest.raises(WeightsError, match="weights file"):
        load_keypoint_encoder(weights.parent / "none.safetensors")


def test_another_architecture_raises_an_error(weights):
    write_tensors(weights, {}, architecture="roi-gcn", name="x", version="1", config=CONFIG)
    with pytest.raises(WeightsError, match=f"'roi-gcn', expected '{ARCHITECTURE}'"):
        load_keypoint_encoder(weights)


def test_tensors_of_another_size_raise_an_error(weights):
    other = dataclasses.replace(CONFIG, vlad=VladConfig(words=5, out_dim=16))
    save_keypoint_encoder(weights, name="x", version="1", config=other, network=network())
    with pytest.raises(WeightsError, match=r"'mean': expected \(640,\), got \(512,\)"):
        load_keypoint_encoder(weights)

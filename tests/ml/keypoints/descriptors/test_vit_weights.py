"""Weights files of ``vit``."""

from __future__ import annotations

import dataclasses
import json

import cv2
import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from ml.errors import WeightsError
from ml.keypoints import load_descriptor
from ml.keypoints.descriptors.vit import descriptor_from_file, load
from ml.keypoints.descriptors.vit_weights import save_network
from ml.networks.vit_adapter import VitConfig, VitMatcher


def texture(shape, seed=0):
    noise = np.random.default_rng(seed).integers(0, 256, (*shape, 3)).astype(np.uint8)
    return cv2.GaussianBlur(noise, (0, 0), 2.5)


def test_weights_round_trip_through_a_file(tiny, tmp_path):
    path = tmp_path / "own.safetensors"
    save_network(path, tiny.network, version="3.1")
    loaded = descriptor_from_file(path)
    assert loaded.version == "3.1" and loaded.network.config == tiny.network.config
    xy, ones = np.array([[10, 12]], np.float32), np.ones(1, np.float32)
    image = texture((40, 50))
    assert np.allclose(loaded.describe(image, xy, ones), tiny.describe(image, xy, ones), atol=0.02)
    again = load_descriptor(f"vit:{path}")
    assert np.array_equal(again.describe(image, xy, ones), loaded.describe(image, xy, ones))


def rewritten(path, out, **metadata):
    with safe_open(path, "pt") as file:
        known = file.metadata()
    save_file(load_file(path), out, metadata={**known, **metadata})
    return out


def test_other_files_raise_an_error(tiny, tmp_path):
    path, other = tmp_path / "own.safetensors", tmp_path / "other.safetensors"
    save_network(path, tiny.network, version="1")
    with pytest.raises(WeightsError, match=r"none\.safetensors"):
        load(f"vit:{tmp_path}/none.safetensors")
    other.write_bytes(b"nothing")
    with pytest.raises(WeightsError, match="safetensors"):
        descriptor_from_file(other)
    with pytest.raises(WeightsError, match=r"'gcn'.*'vit-adapter'"):
        descriptor_from_file(rewritten(path, other, architecture="gcn"))
    config = dataclasses.asdict(tiny.network.config)
    with pytest.raises(WeightsError, match="'colour'"):
        descriptor_from_file(rewritten(path, other, config=json.dumps(config | {"colour": 1})))
    with pytest.raises(WeightsError, match=r"expected .* got"):
        descriptor_from_file(rewritten(path, other, config=json.dumps(config | {"layers": 2})))
    small = json.dumps({"small": {"deep": 1}})
    with pytest.raises(WeightsError, match="'deep'"):
        descriptor_from_file(rewritten(path, other, config=small))


def test_an_adapted_dinov2_is_stored_without_its_backbone(dinov2, tmp_path):
    network = VitMatcher(VitConfig(backbone=dinov2, heads=2))
    path = tmp_path / "adapted.safetensors"
    save_network(path, network, version="1")
    assert all(key.startswith("adapter.") for key in load_file(path))
    loaded = descriptor_from_file(path)
    pixels = torch.rand(1, 3, 28, 28)
    with torch.no_grad():
        assert torch.allclose(loaded.network(pixels), network.eval()(pixels), atol=0.02)

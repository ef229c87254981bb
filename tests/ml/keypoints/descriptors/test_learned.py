"""Learned descriptors and their weights files."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from ml.errors import ShapeError, WeightsError
from ml.files import WEIGHTS_FOLDER
from ml.geometry import transform_points
from ml.keypoints import load_descriptor
from ml.keypoints.descriptors import learned
from ml.keypoints.descriptors.learned import LearnedDescriptor, descriptor_from_file
from ml.keypoints.descriptors.learned_weights import (
    SHIPPED,
    StoredDescriptor,
    read_descriptor,
    save_descriptor,
)
from ml.keypoints.detect import DetectorConfig, detect_keypoints
from ml.keypoints.match import match_descriptors
from ml.networks.keypoint_cnn import KeypointCnn, KeypointCnnConfig
from ml.networks.keypoint_gnn import KeypointGnn, KeypointGnnConfig
from ml.networks.triplet_cnn import TripletCnn, TripletCnnConfig
from ml.types import Keypoints

NAMES = ("triplet", "cnn", "graph")


def stored(name: str) -> StoredDescriptor:
    torch.manual_seed(1)
    if name == "triplet":
        config = TripletCnnConfig(channels=3, hidden=(8, 8, 8), dim=6)
        return StoredDescriptor(name, "0.1", 0.9, TripletCnn(config), None)
    cnn = KeypointCnn(KeypointCnnConfig(widths=(2, 3, 4, 5, 6, 7), dim=6))
    graph = KeypointGnn(KeypointGnnConfig(dim=6, position_hidden=(4,), hidden=5))
    return StoredDescriptor(name, "0.1", 0.9, cnn, graph if name == "graph" else None)


@pytest.fixture(params=NAMES)
def descriptor(request) -> LearnedDescriptor:
    made = stored(request.param)
    return LearnedDescriptor(made.name, made.network, graph=made.graph, ratio=made.ratio)


@pytest.fixture
def image() -> np.ndarray:
    noise = np.random.default_rng(0).integers(0, 255, (90, 120), dtype=np.uint8)
    return np.asarray(cv2.GaussianBlur(noise, (0, 0), 1.5))


def described(descriptor: LearnedDescriptor, image: np.ndarray, xy: np.ndarray) -> np.ndarray:
    return descriptor.describe(image, xy.astype(np.float32), np.ones(len(xy), np.float32))


def test_rows_have_unit_length_and_are_zero_for_points_outside(descriptor, image):
    xy = np.array([[10, 10], [-1, 5], [119, 89], [119.5, 5], [60.3, 40.7]])
    rows = described(descriptor, image, xy)
    assert rows.shape == (5, descriptor.dim)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), [1, 0, 1, 0, 1], atol=1e-5)


def test_zero_points_one_point_and_a_black_image_give_finite_rows(descriptor):
    black = np.zeros((40, 30), np.uint8)
    assert described(descriptor, black, np.zeros((0, 2))).shape == (0, descriptor.dim)
    row = described(descriptor, black, np.array([[5.0, 5.0]]))
    assert row.shape == (1, descriptor.dim)
    assert np.isfinite(row).all()


def test_colour_alpha_and_depth_do_not_change_the_rows_of_equal_grey(descriptor, image):
    xy = np.array([[30.0, 40.0], [70.0, 50.0]])
    expected = described(descriptor, image, xy)
    for other in (
        image[:, :, None],
        np.dstack([image] * 3),
        np.dstack([image, image, image, np.full_like(image, 9)]),
    ):
        assert np.allclose(described(descriptor, other, xy), expected, atol=1e-6)
    deep = described(descriptor, image.astype(np.uint16) * 16, xy)
    assert np.isfinite(deep).all()


def test_the_smallest_image_is_described(descriptor):
    tiny = np.random.default_rng(1).integers(0, 255, (16, 16), dtype=np.uint8)
    assert np.isfinite(described(descriptor, tiny, np.array([[8.0, 8.0]]))).all()


def test_key_points_and_points_have_equal_rows(descriptor, image):
    xy = np.array([[30, 40], [70, 50]], np.float32)
    sizes = np.ones(2, np.float32)
    detected = Keypoints(xy, sizes, 9 * sizes, 45 * sizes)
    rows = descriptor.describe_keypoints(image, detected)
    assert np.array_equal(rows, descriptor.describe(image, xy, sizes))


def test_points_of_another_shape_raise_an_error(descriptor, image):
    with pytest.raises(ShapeError, match=r"xy: expected \(N, 2\), got \(2, 3\)"):
        descriptor.describe(image, np.zeros((2, 3), np.float32), np.ones(2, np.float32))
    with pytest.raises(ShapeError, match="response"):
        descriptor.describe(image, np.zeros((2, 2), np.float32), np.ones(3, np.float32))


def test_tiles_do_not_change_the_rows(monkeypatch):
    made = stored("cnn")
    assert isinstance(made.network, KeypointCnn)
    network = made.network.eval()
    rng = np.random.default_rng(2)
    grey = rng.integers(0, 255, (420, 500), dtype=np.uint8)
    xy = (rng.random((40, 2)) * (499, 419)).astype(np.float32)
    with torch.no_grad():
        expected = learned.describe_dense(network, grey, xy)
        monkeypatch.setattr(learned, "TILE_PX", 160)
        parts = learned.describe_dense(network, grey, xy)
    assert len(list(learned._parts(grey, xy, step=8))) > 6
    assert torch.allclose(parts, expected, atol=1e-5)


def test_chunks_do_not_change_the_rows(monkeypatch, image):
    made = stored("triplet")
    descriptor = LearnedDescriptor(made.name, made.network)
    xy = np.random.default_rng(3).uniform(5, 85, (7, 2))
    expected = described(descriptor, image, xy)
    monkeypatch.setattr(learned, "PATCH_CHUNK", 3)
    assert np.allclose(described(descriptor, image, xy), expected, atol=1e-5)


def test_other_weights_are_loaded_and_named_by_name_and_file(tmp_path, image):
    file = tmp_path / "w.safetensors"
    save_descriptor(file, stored("graph"))
    descriptor = load_descriptor(f"graph:{file}")
    assert (descriptor.name, descriptor.version, descriptor.dim) == (f"graph:{file}", "0.1", 6)
    xy = np.array([[30.0, 40.0], [70.0, 50.0]])
    again = descriptor_from_file(file)
    assert np.array_equal(described(descriptor, image, xy), described(again, image, xy))
    with pytest.raises(WeightsError, match=r"w\.safetensors.*graph.*cnn"):
        load_descriptor(f"cnn:{file}")
    with pytest.raises(WeightsError, match=r"none\.safetensors"):
        load_descriptor(f"cnn:{tmp_path}/none.safetensors")


@pytest.mark.parametrize("name", NAMES)
def test_weights_round_trip_up_to_half_precision(name, tmp_path, image):
    made = stored(name)
    save_descriptor(tmp_path / "w.safetensors", made)
    back = descriptor_from_file(tmp_path / "w.safetensors")
    assert (back.name, back.version, back.ratio, back.dim) == (name, "0.1", 0.9, 6)
    first = LearnedDescriptor(made.name, made.network, graph=made.graph)
    xy = np.array([[30.0, 40.0], [70.0, 50.0]])
    assert np.allclose(described(back, image, xy), described(first, image, xy), atol=2e-3)


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_agrees_with_the_reference(name, image, fast):
    xy = np.array([[30, 40], [70, 50], [100, 20]])
    reference, made = stored(name), stored(name)
    exact = LearnedDescriptor(name, reference.network, graph=reference.graph)
    quick = LearnedDescriptor(name, made.network, graph=made.graph, compute=fast)
    off = np.linalg.norm(described(quick, image, xy) - described(exact, image, xy), axis=1)
    assert (off < 0.05).all()


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "cnn.safetensors"
    save_descriptor(path, stored("cnn"))
    return path


def changed(path, *, metadata=None, tensors=None) -> None:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        original = dict(file.metadata())
    save_file((tensors or load_file)(path), path, metadata=(metadata or dict)(original))


def test_a_missing_or_damaged_file_raises_an_error(tmp_path):
    with pytest.raises(WeightsError, match=r"cnn\.safetensors"):
        read_descriptor(tmp_path / "cnn.safetensors")
    (tmp_path / "cnn.safetensors").write_bytes(b"nothing")
    with pytest.raises(WeightsError, match="safetensors"):
        read_descriptor(tmp_path / "cnn.safetensors")


def test_another_architecture_raises_an_error(weights):
    changed(weights, metadata=lambda m: {**m, "architecture": "roi-gcn"})
    with pytest.raises(WeightsError, match=r"'roi-gcn'.*'triplet-cnn'"):
        read_descriptor(weights)


def test_unknown_and_missing_keys_raise_an_error(weights):
    changed(weights, metadata=lambda m: {**m, "mood": "good"})
    with pytest.raises(WeightsError, match="'mood'"):
        read_descriptor(weights)
    changed(weights, metadata=lambda m: {k: v for k, v in m.items() if k not in ("mood", "ratio")})
    with pytest.raises(WeightsError, match="'ratio'"):
        read_descriptor(weights)


def test_an_unknown_key_of_the_configuration_raises_an_error(weights):
    def more(metadata):
        network = {**json.loads(metadata["network"]), "depth": 3}
        return {**metadata, "network": json.dumps(network)}

    changed(weights, metadata=more)
    with pytest.raises(WeightsError, match=r"'depth'.*dim, map_px"):
        read_descriptor(weights)


def test_weights_of_another_size_or_not_finite_raise_an_error(weights):
    def cut(path):
        return {k: v[:1] if k == "network.last.weight" else v for k, v in load_file(path).items()}

    original = weights.read_bytes()
    changed(weights, tensors=cut)
    with pytest.raises(WeightsError, match=r"'network.last.weight': expected \(6, 7, 8, 8\)"):
        read_descriptor(weights)
    weights.write_bytes(original)

    def spoilt(path):
        return {k: v / 0 if v.is_floating_point() else v for k, v in load_file(path).items()}

    changed(weights, tensors=spoilt)
    with pytest.raises(WeightsError, match="NaN"):
        read_descriptor(weights)


@pytest.mark.parametrize(("name", "min_matches"), [("triplet", 0.5), ("cnn", 0.8), ("graph", 0.8)])
def test_the_shipped_weights_match_a_warped_image(name, min_matches, vessels, warped_vessels):
    warped, matrix = warped_vessels
    keypoints = detect_keypoints(vessels, config=DetectorConfig("sift", max_keypoints=200))
    moved = transform_points(matrix, keypoints.xy).astype(np.float32)
    inside = (moved > 0).all(axis=1) & (moved[:, 0] < 479) & (moved[:, 1] < 359)
    sizes = np.ones(int(inside.sum()), np.float32)
    descriptor = load_descriptor(name)
    assert (descriptor.name, descriptor.dim, descriptor.detector) == (name, 128, "sift")
    pairs, _ = match_descriptors(
        descriptor.describe(vessels, keypoints.xy[inside], sizes),
        descriptor.describe(warped, moved[inside], sizes),
        strategy="nn",
    )
    there = moved[inside]
    error = np.linalg.norm(there[pairs[:, 0]] - there[pairs[:, 1]], axis=1)
    assert (error <= 5).mean() >= min_matches


def test_the_shipped_weights_are_a_few_megabytes():
    for file in SHIPPED.values():
        assert (WEIGHTS_FOLDER / file).stat().st_size < 4 << 20

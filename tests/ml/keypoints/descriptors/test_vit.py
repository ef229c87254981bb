"""The vit descriptor: any image, dense matching of known shifts, files, real DINOv2 code."""

from __future__ import annotations

import dataclasses
import json

import cv2
import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from ml.errors import BadInputError, ShapeError, WeightsError
from ml.keypoints import load_descriptor
from ml.keypoints.descriptors.vit import VitDescriptor, descriptor_from_file, load
from ml.keypoints.descriptors.vit_dense import DenseConfig, match_dense, mutual_patches
from ml.keypoints.descriptors.vit_weights import save_network
from ml.networks.vit_adapter import SmallVitConfig, VitConfig, VitMatcher
from ml.types import Keypoints

TINY = VitConfig(
    small=SmallVitConfig(stem=(8, 16), width=16, depth=1, heads=2), heads=2, max_tokens=400
)


@pytest.fixture(scope="module")
def tiny():
    torch.manual_seed(0)
    return VitDescriptor("vit", VitMatcher(TINY))


@pytest.fixture(scope="module")
def dinov2(tmp_path_factory):
    from transformers import Dinov2Config, Dinov2Model

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("dinov2")
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "mlp_ratio": 2}
    Dinov2Model(Dinov2Config(image_size=56, patch_size=14, **sizes)).save_pretrained(folder)
    return str(folder)


PUBLISHED = {
    "attention_probs_dropout_prob": 0.0,
    "drop_path_rate": 0.0,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "image_size": 518,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-06,
    "layerscale_value": 1.0,
    "mlp_ratio": 4,
    "num_channels": 3,
    "patch_size": 14,
    "qkv_bias": True,
    "num_hidden_layers": 12,
    "num_attention_heads": 2,
    "hidden_size": 24,
}
"""config.json of facebook/dinov2-base as published, but 24 wide with 2 heads, not 768 with 12."""

KINDS = {
    "base": {"model_type": "dinov2", "use_swiglu_ffn": False},
    "giant": {"model_type": "dinov2", "use_swiglu_ffn": True},
    "registers": {
        "model_type": "dinov2_with_registers",
        "use_swiglu_ffn": False,
        "num_register_tokens": 4,
    },
}
"""What sets the published variants apart: giant's gated layers, the four register tokens."""


@pytest.fixture(scope="module", params=sorted(KINDS))
def published(request, tmp_path_factory):
    """A folder as the hub holds it: config.json and safetensors, random weights."""
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("published")
    (folder / "config.json").write_text(json.dumps(PUBLISHED | KINDS[request.param]))
    AutoModel.from_config(AutoConfig.from_pretrained(folder)).save_pretrained(folder)
    assert (folder / "model.safetensors").is_file()
    return str(folder)


def texture(shape, seed=0):
    noise = np.random.default_rng(seed).integers(0, 256, (*shape, 3)).astype(np.uint8)
    return cv2.GaussianBlur(noise, (0, 0), 2.5)


class Ramp(torch.nn.Module):
    """A stand-in whose descriptor of a patch is its mean colour."""

    width, patch_px = 3, 4
    config = VitConfig(max_tokens=400)

    def forward(self, pixels):
        means = torch.nn.functional.avg_pool2d(pixels, 4) - 0.5
        return torch.nn.functional.normalize(means, dim=1)


@pytest.mark.parametrize(
    "image",
    [
        texture((60, 90)),
        texture((60, 90))[:, :, 0],
        texture((60, 90))[:, :, :1],
        np.dstack([texture((60, 90)), np.full((60, 90), 255, np.uint8)]),
        texture((60, 90)).astype(np.uint16) * 16,
        np.zeros((60, 90), np.uint8),
        np.full((60, 90, 3), 255, np.uint8),
        texture((16, 900)),
    ],
    ids=["rgb", "grey", "one channel", "rgba", "12 bit", "black", "white", "thin"],
)
def test_any_image_gives_unit_rows_and_zero_rows_outside(tiny, image):
    height, width = image.shape[:2]
    xy = np.array(
        [[0, 0], [width - 1, height - 1], [7.3, 9.1], [-1, 5], [width, 5], [5, 1e6]], np.float32
    )
    found = tiny.describe(image, xy, np.ones(6, np.float32))
    assert found.shape == (6, 16) and found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=1), [1, 1, 1, 0, 0, 0], atol=1e-4)


def test_tokens_stay_bounded_however_large_the_image(tiny):
    for shape in ((40, 9000), (3000, 2000), (10, 10), (2, 4000)):
        pixels, scale = tiny.network_input(
            np.zeros((max(shape[0], 16), max(shape[1], 16)), np.uint8)
        )
        assert pixels.shape[0] * pixels.shape[1] <= 400 * 16
        assert min(pixels.shape[:2]) >= 8 and min(scale) > 0


def test_no_points_give_no_rows_and_one_point_one(tiny):
    none = tiny.describe(texture((40, 40)), np.zeros((0, 2), np.float32), np.zeros(0, np.float32))
    assert none.shape == (0, 16)
    one = tiny.describe(texture((40, 40)), np.full((1, 2), 9, np.float32), np.ones(1, np.float32))
    assert one.shape == (1, 16)


def test_key_points_are_described_as_points(tiny):
    xy = np.array([[10, 12], [30.5, 8]], np.float32)
    ones = np.ones(2, np.float32)
    points = Keypoints(xy, ones, ones * 12, ones * 45)
    image = texture((40, 50))
    assert np.array_equal(tiny.describe_keypoints(image, points), tiny.describe(image, xy, ones))


def test_at_a_patch_centre_the_row_is_that_of_the_map(tiny):
    image = texture((40, 40))
    features, scale = tiny.describe_map(image)
    assert scale == (1, 1)
    found = tiny.describe(image, np.array([[13.5, 9.5]], np.float32), np.ones(1, np.float32))
    assert np.allclose(found[0], features[:, 2, 3].numpy(), atol=1e-5)


def test_bad_points_and_bad_images_are_refused(tiny):
    ones = np.ones(1, np.float32)
    with pytest.raises(ShapeError, match="xy"):
        tiny.describe(texture((40, 40)), np.full((1, 2), np.nan, np.float32), ones)
    with pytest.raises(ShapeError, match="response"):
        tiny.describe(texture((40, 40)), np.zeros((2, 2), np.float32), ones)
    with pytest.raises(ShapeError, match="image"):
        tiny.describe(np.zeros((4, 4), np.uint8), np.zeros((1, 2), np.float32), ones)
    with pytest.raises(ShapeError, match="image"):
        tiny.describe(np.zeros(4, np.uint8), np.zeros((1, 2), np.float32), ones)


def test_mutual_patches_agree_with_loops():
    rng = np.random.default_rng(0)
    a, b = (rng.normal(0, 1, (n, 4)).astype(np.float32) for n in (1500, 40))
    similarity = a @ b.T
    slow = [
        [i, j]
        for i in range(len(a))
        for j in range(len(b))
        if similarity[i].argmax() == j and similarity[:, j].argmax() == i
    ]
    pairs, value = mutual_patches(a, b)
    assert pairs.tolist() == slow
    assert np.allclose(value, similarity[pairs[:, 0], pairs[:, 1]])


def test_mutual_patches_of_nothing_are_none():
    none, some = np.zeros((0, 4), np.float32), np.ones((3, 4), np.float32)
    for a, b in ((none, some), (some, none), (none, none)):
        assert mutual_patches(a, b)[0].shape == (0, 2)


def test_identical_images_match_patches_with_themselves(tiny):
    image = texture((60, 80))
    found = match_dense(image, image, descriptor=tiny)
    assert len(found) >= 0.98 * 15 * 20 and np.allclose(found.score, 1, atol=1e-4)
    assert np.allclose(found.xy_a, found.xy_b, atol=1e-3)


def test_refinement_finds_the_shift_within_a_patch():
    # b shows the scene 1 px further left than a: x_a = x_b + 1
    scene = texture((80, 101))
    a, b = scene[:, :-1], scene[:, 1:]
    descriptor = VitDescriptor("ramp", Ramp())
    config = DenseConfig(threshold=0.9)
    coarse = match_dense(
        a, b, descriptor=descriptor, config=dataclasses.replace(config, refine=False)
    )
    fine = match_dense(a, b, descriptor=descriptor, config=config)
    near = np.abs(coarse.xy_a - coarse.xy_b).max(axis=1) < 0.5
    assert near.sum() > 30
    away = fine.xy_a[near] - fine.xy_b[near]
    assert np.median(np.abs(away - (1, 0)).max(axis=1)) < 0.2


def test_the_threshold_and_the_resampling_are_switches(tiny):
    a, b = texture((60, 80)), texture((60, 80), 1)
    all_ = match_dense(a, b, descriptor=tiny, config=DenseConfig(threshold=-1, refine=False))
    sure = match_dense(a, b, descriptor=tiny, config=DenseConfig(threshold=0.99, refine=False))
    assert len(sure) <= len(all_) and (sure.score > 0.99).all()
    assert (np.diff(all_.score) <= 0).all()
    finer = match_dense(a, a, descriptor=tiny, config=DenseConfig(refine=False, resample=2))
    assert len(finer) > 2 * 15 * 20
    with pytest.raises(BadInputError, match="resample, window_px"):
        match_dense(a, b, descriptor=tiny, config=DenseConfig(resample=0))


def test_images_of_two_sizes_keep_their_own_pixels(tiny):
    image = texture((60, 80))
    small = cv2.resize(image, (40, 30), interpolation=cv2.INTER_AREA)
    found = match_dense(image, small, descriptor=tiny, config=DenseConfig(threshold=-1))
    assert found.xy_a[:, 0].max() > 41 and found.xy_b[:, 0].max() < 40


def test_a_file_is_read_back_and_says_what_it_is(tiny, tmp_path):
    path = tmp_path / "own.safetensors"
    save_network(path, tiny.network, version="3.1")
    loaded = descriptor_from_file(path)
    assert loaded.version == "3.1" and loaded.network.config == TINY
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


def test_files_that_are_not_ours_are_refused(tiny, tmp_path):
    path, other = tmp_path / "own.safetensors", tmp_path / "other.safetensors"
    save_network(path, tiny.network, version="1")
    with pytest.raises(WeightsError, match=r"none\.safetensors: no such weights file"):
        load(f"vit:{tmp_path}/none.safetensors")
    other.write_bytes(b"nothing")
    with pytest.raises(WeightsError, match="not a safetensors file"):
        descriptor_from_file(other)
    with pytest.raises(WeightsError, match="architecture 'gcn', expected 'vit-adapter'"):
        descriptor_from_file(rewritten(path, other, architecture="gcn"))
    config = dataclasses.asdict(TINY)
    with pytest.raises(WeightsError, match="unknown key 'colour'"):
        descriptor_from_file(rewritten(path, other, config=json.dumps(config | {"colour": 1})))
    with pytest.raises(WeightsError, match=r"expected .* got"):
        descriptor_from_file(rewritten(path, other, config=json.dumps(config | {"layers": 2})))
    small = json.dumps({"small": {"deep": 1}})
    with pytest.raises(WeightsError, match="unknown key 'deep'"):
        descriptor_from_file(rewritten(path, other, config=small))


def test_a_transformers_model_alone_is_the_baseline(dinov2):
    descriptor = load_descriptor(f"vit:{dinov2}")
    xy, ones = np.array([[10, 12], [33, 20]], np.float32), np.ones(2, np.float32)
    found = descriptor.describe(texture((50, 90)), xy, ones)
    assert found.shape == (2, 24) and np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_a_model_of_the_published_shape_gives_one_unit_row_a_patch(published):
    from transformers import AutoModel

    descriptor = load_descriptor(f"vit:{published}")
    assert (descriptor.dim, descriptor.network.patch_px) == (24, 14)
    image = texture((70, 98))  # 5 x 7 patches; the position table is of 37 x 37
    features, scale = descriptor.describe_map(image)
    assert features.shape == (24, 5, 7) and scale == (1, 1)
    pixels = (torch.from_numpy(image).permute(2, 0, 1)[None] / 255 - descriptor.network.mean) / (
        descriptor.network.std
    )
    model = AutoModel.from_pretrained(published).eval()
    with torch.no_grad():
        tokens = model(pixel_values=pixels).last_hidden_state[0]
    extra = 1 + getattr(model.config, "num_register_tokens", 0)
    assert len(tokens) == extra + 35
    by_hand = torch.nn.functional.normalize(tokens[extra:], dim=1).T.reshape(24, 5, 7)
    assert torch.allclose(features, by_hand, atol=1e-4)
    assert (features.flatten(1).T @ features.flatten(1) < 0.9999).sum() > 35 * 30


def test_a_model_of_the_published_shape_is_adapted_and_matches_densely(published, tmp_path):
    network = VitMatcher(VitConfig(backbone=published, heads=2))
    path = tmp_path / "adapted.safetensors"
    save_network(path, network, version="1")
    descriptor = descriptor_from_file(path)
    image = texture((84, 112))
    found = match_dense(image, image, descriptor=descriptor)
    assert len(found) >= 0.9 * 6 * 8 and np.allclose(found.xy_a, found.xy_b, atol=1e-3)


def test_an_adapted_dinov2_is_stored_without_its_backbone(dinov2, tmp_path):
    network = VitMatcher(VitConfig(backbone=dinov2, heads=2))
    path = tmp_path / "adapted.safetensors"
    save_network(path, network, version="1")
    assert all(key.startswith("adapter.") for key in load_file(path))
    loaded = descriptor_from_file(path)
    pixels = torch.rand(1, 3, 28, 28)
    with torch.no_grad():
        assert torch.allclose(loaded.network(pixels), network.eval()(pixels), atol=0.02)


def test_a_name_without_a_path_is_refused():
    with pytest.raises(WeightsError, match="path or name after the colon"):
        load_descriptor("vit:")


def test_the_shipped_descriptor_matches_a_turned_image_better_than_chance():
    descriptor = load_descriptor("vit")
    image = texture((160, 160))
    turn = cv2.getRotationMatrix2D((79.5, 79.5), 15, 1.1)
    other = cv2.warpAffine(image, turn, (160, 160))
    xy = np.random.default_rng(0).uniform(40, 120, (60, 2)).astype(np.float32)
    there = (xy @ turn[:, :2].T + turn[:, 2]).astype(np.float32)
    ones = np.ones(60, np.float32)
    a, b = descriptor.describe(image, xy, ones), descriptor.describe(other, there, ones)
    assert descriptor.dim == a.shape[1]
    assert ((a @ b.T).argmax(axis=1) == np.arange(60)).mean() > 0.5

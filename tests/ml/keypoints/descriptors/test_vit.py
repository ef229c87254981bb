"""The ``vit`` descriptor: any image, any points, and real DINOv2 code."""

from __future__ import annotations

import copy

import cv2
import numpy as np
import pytest
import torch

from ml.errors import ShapeError, WeightsError
from ml.keypoints import load_descriptor
from ml.keypoints.descriptors.vit import VitDescriptor
from ml.types import Keypoints


def texture(shape, seed=0):
    noise = np.random.default_rng(seed).integers(0, 256, (*shape, 3)).astype(np.uint8)
    return cv2.GaussianBlur(noise, (0, 0), 2.5)


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
    vectors = tiny.describe(image, xy, np.ones(6, np.float32))
    assert vectors.shape == (6, 16) and vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), [1, 1, 1, 0, 0, 0], atol=1e-4)


def test_the_number_of_tokens_is_bounded(tiny):
    for shape in ((40, 9000), (3000, 2000), (10, 10), (2, 4000)):
        pixels, scale = tiny.network_input(
            np.zeros((max(shape[0], 16), max(shape[1], 16)), np.uint8)
        )
        assert pixels.shape[0] * pixels.shape[1] <= 400 * 16
        assert min(pixels.shape[:2]) >= 8 and min(scale) > 0


def test_zero_points_and_one_point_are_accepted(tiny):
    none = tiny.describe(texture((40, 40)), np.zeros((0, 2), np.float32), np.zeros(0, np.float32))
    assert none.shape == (0, 16)
    item = tiny.describe(texture((40, 40)), np.full((1, 2), 9, np.float32), np.ones(1, np.float32))
    assert item.shape == (1, 16)


def test_key_points_and_points_have_equal_rows(tiny):
    xy = np.array([[10, 12], [30.5, 8]], np.float32)
    ones = np.ones(2, np.float32)
    points = Keypoints(xy, ones, ones * 12, ones * 45)
    image = texture((40, 50))
    assert np.array_equal(tiny.describe_keypoints(image, points), tiny.describe(image, xy, ones))


def test_rows_at_patch_centres_equal_the_map(tiny):
    image = texture((40, 40))
    features, scale = tiny.describe_map(image)
    assert scale == (1, 1)
    vectors = tiny.describe(image, np.array([[13.5, 9.5]], np.float32), np.ones(1, np.float32))
    assert np.allclose(vectors[0], features[:, 2, 3].numpy(), atol=1e-5)


def test_invalid_points_and_images_raise_an_error(tiny):
    ones = np.ones(1, np.float32)
    with pytest.raises(ShapeError, match="xy"):
        tiny.describe(texture((40, 40)), np.full((1, 2), np.nan, np.float32), ones)
    with pytest.raises(ShapeError, match="response"):
        tiny.describe(texture((40, 40)), np.zeros((2, 2), np.float32), ones)
    with pytest.raises(ShapeError, match="image"):
        tiny.describe(np.zeros((4, 4), np.uint8), np.zeros((1, 2), np.float32), ones)
    with pytest.raises(ShapeError, match="image"):
        tiny.describe(np.zeros(4, np.uint8), np.zeros((1, 2), np.float32), ones)


def test_a_plain_transformers_model_is_the_baseline(dinov2):
    descriptor = load_descriptor(f"vit:{dinov2}")
    xy, ones = np.array([[10, 12], [33, 20]], np.float32), np.ones(2, np.float32)
    vectors = descriptor.describe(texture((50, 90)), xy, ones)
    assert vectors.shape == (2, 24) and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_published_architecture_gives_a_unit_row_per_patch(published):
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


def test_a_name_without_a_path_raises_an_error():
    with pytest.raises(WeightsError, match="colon"):
        load_descriptor("vit:")


def test_the_shipped_descriptor_matches_a_rotated_image_better_than_chance():
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


def test_half_precision_agrees_with_the_reference(tiny, fast):
    image, xy = texture((60, 90)), np.array([[20, 20], [50, 30]], np.float32)
    quick = VitDescriptor("vit", copy.deepcopy(tiny.network), compute=fast)
    exact, rows = (d.describe(image, xy, np.ones(2, np.float32)) for d in (tiny, quick))
    assert (np.linalg.norm(rows - exact, axis=1) < 0.05).all()

"""Preprocessing of images, compared with Pillow and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from ml.errors import BadInputError
from ml.networks.vit_adapter import IMAGENET_MEAN, IMAGENET_STD
from ml.roi.encoders.transform import (
    ImageTransform,
    transform_of_processor,
    transform_of_timm,
)

IMAGENET = {"image_mean": list(IMAGENET_MEAN), "image_std": list(IMAGENET_STD)}


def noise(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)


def standard(pixels, mean=IMAGENET_MEAN, std=IMAGENET_STD):
    return ((pixels.astype(np.float64) / 255 - mean) / std).transpose(2, 0, 1)


def test_a_patch_of_the_right_size_is_only_standardised():
    patch = noise(20, 20)
    image = ImageTransform(20, 20, mean=(0.7, 0.5, 0.6), std=(0.2, 0.1, 0.3)).apply(patch)
    assert image.shape == (3, 20, 20) and image.dtype == np.float32
    assert np.allclose(image, standard(patch, (0.7, 0.5, 0.6), (0.2, 0.1, 0.3)), atol=1e-5)


@pytest.mark.parametrize("name", ["bilinear", "bicubic", "lanczos"])
def test_resizing_equals_pillow(name):
    patch = noise(256, 256)
    filter_ = Image.Resampling[name.upper()]
    expected = np.asarray(Image.fromarray(patch).resize((224, 224), filter_))
    image = ImageTransform(224, 224, interpolation=name).apply(patch)
    assert np.allclose(image, standard(expected), atol=1e-5)


def test_the_centre_is_cropped():
    patch = noise(256, 256)
    image = ImageTransform(256, 224).apply(patch)
    assert np.allclose(image, standard(patch[16:240, 16:240]), atol=1e-5)


def test_the_shorter_side_is_resized():
    patch = noise(40, 80)
    expected = np.asarray(Image.fromarray(patch).resize((40, 20), Image.Resampling.BICUBIC))
    image = ImageTransform(20, 20).apply(patch)
    assert np.allclose(image, standard(expected[:, 10:30]), atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((224, 256), "crop: expected 1 to 224 px"), ((224, 224, "cubic"), "interpolation: expected")],
)
def test_invalid_values_raise_an_error(arguments, message):
    with pytest.raises(BadInputError, match=message):
        ImageTransform(*arguments)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}}
            | {"do_center_crop": True, "resample": 3},
            (256, 224, "bicubic"),
        ),
        ({"size": {"height": 224, "width": 224}, "resample": 2}, (224, 224, "bilinear")),
        ({"size": 224}, (224, 224, "bilinear")),
        ({"size": {"shortest_edge": 224}, "crop_pct": 0.875, "resample": 3}, (256, 224, "bicubic")),
        ({"size": {"shortest_edge": 384}, "crop_pct": 1.0, "resample": 3}, (384, 384, "bicubic")),
        (
            {"do_resize": False, "do_center_crop": True, "crop_size": 224},
            (224, 224, "bilinear"),
        ),
    ],
    ids=["dinov2", "vit", "old", "convnext", "large convnext", "crop alone"],
)
def test_processors_of_transformers_are_read(values, expected):
    transform = transform_of_processor(IMAGENET | values)
    assert (transform.resize_px, transform.crop_px, transform.interpolation) == expected
    assert transform.mean == IMAGENET_MEAN and transform.std == IMAGENET_STD


def test_a_processor_without_normalisation_preserves_the_range():
    transform = transform_of_processor({"size": 8, "do_normalize": False})
    assert transform.mean == (0, 0, 0) and transform.std == (1, 1, 1)


@pytest.mark.parametrize(
    ("values", "message"),
    [({}, "names no size"), ({"size": 224, "do_rescale": False}, "scaled by 1/255")],
)
def test_an_incomplete_processor_raises_an_error(values, message):
    with pytest.raises(BadInputError, match=message):
        transform_of_processor(IMAGENET | values)


def test_data_configurations_of_timm_are_read():
    values = {"input_size": (3, 224, 224), "crop_pct": 0.9, "interpolation": "bicubic"}
    transform = transform_of_timm(values | {"mean": IMAGENET_MEAN, "std": IMAGENET_STD})
    assert (transform.resize_px, transform.crop_px, transform.interpolation) == (
        248,
        224,
        "bicubic",
    )

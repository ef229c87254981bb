"""The default descriptor with its shipped weights: invariances, degenerate input, weights files."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from ml.errors import ShapeError, WeightsError
from ml.keypoints import load_descriptor
from ml.keypoints.descriptors.polar import PolarGrid, polar_patches
from ml.keypoints.descriptors.tessera import (
    WEIGHTS,
    TesseraDescriptor,
    load,
    load_tessera,
    save_tessera,
    zoom_of,
)
from ml.networks.tessera_descriptor import TesseraConfig, TesseraNet
from ml.types import Keypoints

TINY = TesseraConfig(rings=8, angles=16, widths=(4, 4, 4, 8, 8, 8), dim=16)


@pytest.fixture(scope="module")
def descriptor() -> TesseraDescriptor:
    return load()


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    rng = np.random.default_rng(5)
    layers = [
        cv2.GaussianBlur(rng.standard_normal((301, 301)).astype(np.float32), (0, 0), s) * s
        for s in (1.5, 4, 12)
    ]
    total = np.sum(layers, axis=0)
    return np.clip(130 + 45 * total / total.std(), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def xy() -> np.ndarray:
    grid = np.stack(np.meshgrid(np.arange(90, 216, 14), np.arange(90, 216, 14)), axis=-1)
    return grid.reshape(-1, 2).astype(np.float32)


def _ones(xy: np.ndarray) -> np.ndarray:
    return np.ones(len(xy), np.float32)


def _right(d: TesseraDescriptor, *views: tuple[np.ndarray, np.ndarray]) -> float:
    """Share of the points whose nearest descriptor in the second image is the same point."""
    rows_a, rows_b = (d.describe(image, xy, _ones(xy)) for image, xy in views)
    return float(((rows_a @ rows_b.T).argmax(axis=1) == np.arange(len(rows_a))).mean())


def _turned(image: np.ndarray, xy: np.ndarray, angle_deg: float) -> tuple[np.ndarray, np.ndarray]:
    matrix = cv2.getRotationMatrix2D((150, 150), angle_deg, 1.0)
    return (
        cv2.warpAffine(image, matrix, (301, 301)),
        (xy @ matrix[:, :2].T + matrix[:, 2]).astype(np.float32),
    )


def test_the_descriptor_is_loaded_by_its_name() -> None:
    assert load_descriptor("tessera").name == "tessera"


def test_descriptors_are_nearly_invariant_to_rotation(
    descriptor: TesseraDescriptor, image: np.ndarray
) -> None:
    centre = np.array([[150, 150]], np.float32)
    upright = descriptor.describe(image, centre, _ones(centre))
    turned = descriptor.describe(np.ascontiguousarray(np.rot90(image)), centre, _ones(centre))
    assert float((upright * turned).sum()) > 0.9


@pytest.mark.parametrize("angle_deg", [10.0, 37.0, 45.0, 120.0, 180.0])
def test_points_match_themselves_in_a_rotated_image(
    descriptor: TesseraDescriptor, image: np.ndarray, xy: np.ndarray, angle_deg: float
) -> None:
    assert _right(descriptor, (image, xy), _turned(image, xy, angle_deg)) >= 0.98


@pytest.mark.parametrize("size", [3, 9, 15])
def test_points_match_themselves_in_a_blurred_image(
    descriptor: TesseraDescriptor, image: np.ndarray, xy: np.ndarray, size: int
) -> None:
    assert _right(descriptor, (image, xy), (cv2.blur(image, (size, 1)), xy)) >= 0.95


def test_descriptors_do_not_depend_on_the_position(
    descriptor: TesseraDescriptor, image: np.ndarray, xy: np.ndarray
) -> None:
    """Equal tissue at another position, with points in another order."""
    image, xy = cv2.resize(image, None, fx=2, fy=2), 2 * xy
    xy = xy[(np.abs(xy - 300) < 80).all(axis=1)]  # whose widest support lies inside
    moved = cv2.copyMakeBorder(image, 64, 0, 192, 0, cv2.BORDER_REFLECT_101)
    order = np.random.default_rng(0).permutation(len(xy))
    a = descriptor.describe(image, xy, _ones(xy))[order]
    b = descriptor.describe(moved, xy[order] + np.float32([192, 64]), _ones(xy))
    np.testing.assert_allclose(a, b, atol=2e-3)


def test_the_scale_is_used_and_the_angle_is_not(
    descriptor: TesseraDescriptor, image: np.ndarray, xy: np.ndarray
) -> None:
    some = np.full(len(xy), 8, np.float32)
    expected = descriptor.describe_keypoints(image, Keypoints(xy, _ones(xy), some, -_ones(xy)))
    points = Keypoints(xy, _ones(xy), some, np.arange(len(xy)).astype(np.float32))
    np.testing.assert_allclose(descriptor.describe_keypoints(image, points), expected, atol=1e-5)
    wider = Keypoints(xy, _ones(xy), 2 * some, -_ones(xy))
    assert np.abs(descriptor.describe_keypoints(image, wider) - expected).max() > 1e-2


def test_the_support_equals_hand_worked_values() -> None:
    sizes = np.array([8.0, 16.0, 0.1, 1000.0, -1.0, np.nan], np.float32)
    np.testing.assert_allclose(zoom_of(sizes), [1, 2**0.7, 0.6, 2.2, 1, 1], rtol=1e-5)


def test_descriptors_are_similar_at_twice_the_scale(image: np.ndarray, xy: np.ndarray) -> None:
    grid = PolarGrid(rings=8, angles=16, radius_px=32.0, core_px=8.0)
    large = cv2.resize(image, (602, 602), interpolation=cv2.INTER_CUBIC)
    zoom = np.full(len(xy), 2, np.float32)
    a = polar_patches(image, xy, grid=grid)
    b = polar_patches(large, 2 * xy + 0.5, grid=grid, zoom=zoom)
    assert np.abs(a - b).mean() < 0.08


def test_colour_depth_and_alpha_do_not_change_descriptors(
    descriptor: TesseraDescriptor, image: np.ndarray, xy: np.ndarray
) -> None:
    grey = descriptor.describe(image, xy, _ones(xy))
    rgba = np.dstack([image, image, image, np.full_like(image, 7)])
    np.testing.assert_array_equal(descriptor.describe(rgba, xy, _ones(xy)), grey)
    deep = descriptor.describe(image.astype(np.uint16) * 200, xy, _ones(xy))
    assert (deep * grey).sum(axis=1).min() > 0.97


def test_zero_points_one_point_and_points_outside_are_accepted(
    descriptor: TesseraDescriptor, image: np.ndarray
) -> None:
    none = np.zeros((0, 2), np.float32)
    assert descriptor.describe(image, none, _ones(none)).shape == (0, descriptor.dim)
    some = np.array([[0, 0], [300, 300], [-1, 5], [301, 5], [150, 150]], np.float32)
    rows = descriptor.describe(image, some, _ones(some))
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 1, 0, 0, 1], atol=1e-4)


@pytest.mark.parametrize("level", [0, 90, 255])
def test_a_flat_image_gives_rows_that_never_match(
    descriptor: TesseraDescriptor, level: int
) -> None:
    flat = np.full((64, 80), level, np.uint8)
    points = np.array([[40, 32], [1, 1]], np.float32)
    assert not descriptor.describe(flat, points, _ones(points)).any()


def test_points_that_are_not_finite_raise_an_error(
    descriptor: TesseraDescriptor, image: np.ndarray
) -> None:
    with pytest.raises(ShapeError, match="finite"):
        descriptor.describe(image, np.array([[np.nan, 1]], np.float32), np.ones(1, np.float32))


def test_a_panorama_of_ten_thousand_pixels_is_described(descriptor: TesseraDescriptor) -> None:
    rng = np.random.default_rng(0)
    small = rng.integers(0, 255, (125, 1250)).astype(np.uint8)
    panorama = cv2.resize(small, (10000, 1000), interpolation=cv2.INTER_CUBIC)
    points = (rng.random((200, 2)) * [9999, 999]).astype(np.float32)
    rows = descriptor.describe(panorama, points, _ones(points))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)


def test_weights_round_trip_through_a_file(
    tmp_path: Path, image: np.ndarray, xy: np.ndarray
) -> None:
    torch.manual_seed(0)
    network = TesseraNet(TINY)
    save_tessera(tmp_path / "w.safetensors", name="tessera", version="1", network=network)
    loaded = load_tessera(tmp_path / "w.safetensors")
    assert loaded.network.config == TINY and loaded.dim == 16
    expected = TesseraDescriptor(network).describe(image, xy, _ones(xy))
    np.testing.assert_allclose(loaded.describe(image, xy, _ones(xy)), expected, atol=2e-2)


def test_damaged_or_other_weights_raise_an_error(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="weights file"):
        load_tessera(tmp_path / "none.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"12345678")
    with pytest.raises(WeightsError, match="damaged"):
        load_tessera(tmp_path / "bad.safetensors")
    save_file({"x": np.zeros(1, np.float32)}, tmp_path / "other.safetensors")
    with pytest.raises(WeightsError, match=r"'unknown'.*'tessera'"):
        load_tessera(tmp_path / "other.safetensors")


def test_unknown_keys_and_other_sizes_raise_an_error(tmp_path: Path) -> None:
    save_tessera(tmp_path / "w.safetensors", name="tessera", version="1", network=TesseraNet(TINY))
    tensors = load_file(tmp_path / "w.safetensors")
    for values, message in (
        ({"rings": 8, "colour": 1}, "unknown key 'colour'"),
        ({"rings": 8, "angles": 16}, "expected"),
    ):
        metadata = {
            "architecture": "tessera",
            "name": "tessera",
            "version": "1",
            "config": json.dumps(values),
        }
        save_file(tensors, tmp_path / "v.safetensors", metadata=metadata)
        with pytest.raises(WeightsError, match=message):
            load_tessera(tmp_path / "v.safetensors")


def test_batches_in_half_precision_agree_with_the_reference(descriptor, image, xy, fast):
    quick = load_tessera(WEIGHTS)
    quick = TesseraDescriptor(quick.network, compute=fast)
    reference, rows = (d.describe(image, xy, _ones(xy)) for d in (descriptor, quick))
    assert (np.linalg.norm(rows - reference, axis=1) < 0.02).all()

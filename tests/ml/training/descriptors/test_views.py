"""Stills and their views."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from PIL import Image

from ml.errors import BadInputError
from ml.geometry import transform_points
from ml.training.descriptors.views import (
    KeypointStill,
    StillsConfig,
    StillViewConfig,
    make_still,
    make_view,
    random_motion_kernel,
    random_transform,
    read_stills,
    spaced,
)
from ml.types import no_progress

PAPER = StillViewConfig(combined=0.0, photometric=0.0)


def texture(seed: int, shape: tuple[int, int] = (160, 200)) -> np.ndarray:
    noise = np.random.default_rng(seed).integers(60, 255, shape, dtype=np.uint8)
    return np.asarray(cv2.GaussianBlur(noise, (0, 0), 1.5))


@pytest.fixture(scope="module")
def still() -> KeypointStill:
    made = make_still(
        "a", np.dstack([texture(0)] * 3), long_side_px=200, config=StillsConfig(), burnt_in=()
    )
    assert made is not None
    return made


def test_each_view_of_the_paper_is_one_of_its_rotations_translations_or_scalings():
    rng, seen = np.random.default_rng(0), set()
    for _ in range(200):
        matrix = random_transform(rng, (100, 140), PAPER)
        scale = np.sqrt(np.linalg.det(matrix[:2, :2]))
        angle = np.degrees(np.arctan2(matrix[0, 1], matrix[0, 0]))
        centre = transform_points(matrix, np.array([[69.5, 49.5]]))[0] - (69.5, 49.5)
        kinds = [abs(angle) > 1e-6, abs(scale - 1) > 1e-6, np.abs(centre).max() > 1e-6]
        assert sum(kinds) == 1
        value = (abs(angle), scale, np.abs(centre).max())[kinds.index(True)]
        seen.add((kinds.index(True), round(float(value), 4)))
    assert {v for k, v in seen if k == 0} == {5.0, 10.0, 15.0}
    assert {v for k, v in seen if k == 1} == {0.9, 0.95, 1.05, 1.1, 1.15}
    assert {v for k, v in seen if k == 2} == {4.0, 6.0, 8.0, 10.0}


def test_a_view_shows_the_still_at_the_mapped_position(still):
    view = make_view(np.random.default_rng(1), still, PAPER)
    grid = np.array([[x, y] for x in range(60, 140, 10) for y in range(50, 110, 10)], np.float64)
    moved = transform_points(view.H_view_from_still, grid)
    there = cv2.remap(
        view.equalised, moved[:, :1].astype(np.float32), moved[:, 1:].astype(np.float32), 1
    )
    here = still.equalised[grid[:, 1].astype(int), grid[:, 0].astype(int)]
    assert np.corrcoef(there.ravel(), here)[0, 1] > 0.9


def test_the_same_generator_gives_the_same_view(still):
    views = [make_view(np.random.default_rng(7), still, StillViewConfig()) for _ in range(2)]
    assert np.array_equal(views[0].equalised, views[1].equalised)


def test_selected_points_are_the_first_that_are_far_enough_apart():
    xy = np.array([[0, 0], [3, 0], [6, 0], [6, 4]], np.float32)
    assert spaced(xy, apart_px=5.0).tolist() == [0, 2]
    assert len(spaced(xy, apart_px=0.0)) == 4


def test_key_points_are_outside_burnt_in_text():
    image = np.dstack([texture(3)] * 3)
    made = make_still("a", image, long_side_px=200, config=StillsConfig())
    assert made is not None
    assert not ((made.xy[:, 0] < 47) & (made.xy[:, 1] >= 145)).any()


def test_an_image_without_key_points_is_left_out():
    flat = np.full((160, 200, 3), 90, np.uint8)
    assert make_still("a", flat, long_side_px=200, config=StillsConfig()) is None


def test_a_still_is_cropped_to_the_visible_circle():
    image = np.zeros((160, 200, 3), np.uint8)
    circle = np.zeros((160, 200), np.uint8)
    cv2.circle(circle, (100, 80), 70, 255, -1)
    image[circle > 0] = np.dstack([texture(4)] * 3)[circle > 0]
    made = make_still("a", image, long_side_px=200, config=StillsConfig(), burnt_in=())
    assert made is not None
    assert 120 <= made.grey.shape[0] < 150
    assert 120 <= made.grey.shape[1] < 150


def test_a_motion_kernel_is_a_line_that_sums_to_one():
    for seed in range(20):
        kernel = random_motion_kernel(np.random.default_rng(seed), 15)
        assert kernel.sum() == pytest.approx(1, abs=1e-5)
        assert max(kernel.shape) <= 15
        assert kernel.shape[0] % 2 == 1


def test_operations_are_held_out_by_name(tmp_path):
    folder = tmp_path / "stills"
    folder.mkdir()
    for i, name in enumerate(("00001-1", "00002-1", "00001-2")):
        Image.fromarray(np.dstack([texture(i)] * 3)).save(folder / f"{name}.png")
    config = StillsConfig(folder="stills", held_out=("00002",), long_sides_px=(200,))
    train, held_out = read_stills(tmp_path, config, progress=no_progress)
    assert [s.name for s in train] == ["00001-1.png", "00001-2.png"]
    assert [s.name for s in held_out] == ["00002-1.png"]


def test_a_folder_without_images_raises_an_error(tmp_path):
    with pytest.raises(BadInputError, match="stills"):
        read_stills(tmp_path, StillsConfig(folder="stills"), progress=no_progress)

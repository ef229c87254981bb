"""Detection: names, masks, even selection."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.errors import ShapeError, UnknownNameError
from ml.keypoints.detect import DETECTOR_NAMES, DetectorConfig, detect_keypoints, select_even
from ml.types import Keypoints


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_every_detector_gives_documented_shapes(name: str, vessels: np.ndarray) -> None:
    keypoints = detect_keypoints(vessels, config=DetectorConfig(name=name, max_keypoints=150))
    assert 50 < len(keypoints) <= 150
    assert keypoints.xy.shape == (len(keypoints), 2)
    for values in (keypoints.response, keypoints.size_px, keypoints.angle_deg):
        assert values.shape == (len(keypoints),)
        assert values.dtype == np.float32
    assert np.isfinite(keypoints.xy).all()


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_angles_are_returned_if_the_detector_computes_them(name: str, vessels: np.ndarray) -> None:
    angle = detect_keypoints(vessels, config=DetectorConfig(name=name)).angle_deg
    if name == "kaze":  # computes angles with descriptors
        assert (angle == -1).all()
    else:
        assert len(np.unique(angle)) > 50
        assert ((angle >= 0) & (angle < 360)).all()


def test_key_points_are_inside_the_mask(vessels: np.ndarray) -> None:
    mask = np.zeros(vessels.shape[:2], np.uint8)
    mask[:, :200] = 255
    keypoints = detect_keypoints(vessels, mask=mask)
    assert len(keypoints)
    assert keypoints.xy[:, 0].max() < 200.5


def test_a_black_image_has_no_key_points() -> None:
    assert len(detect_keypoints(np.zeros((100, 100), np.uint8))) == 0


def test_selection_takes_the_best_of_each_cell_first() -> None:
    crowded = np.array([[10, 10], [11, 10], [12, 10], [90, 90]], np.float32)
    response = np.array([5, 9, 7, 1], np.float32)
    points = Keypoints(crowded, response, np.ones(4, np.float32), np.zeros(4, np.float32))
    chosen = select_even(points, shape=(100, 100), count=2, cells=4)
    assert chosen.xy.tolist() == [[11, 10], [90, 90]]


def test_an_unknown_detector_raises_an_error_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"'surf'.*akaze, kaze"):
        detect_keypoints(np.zeros((32, 32), np.uint8), config=DetectorConfig(name="surf"))


def test_a_mask_of_another_size_raises_an_error(vessels: np.ndarray) -> None:
    with pytest.raises(ShapeError, match="mask"):
        detect_keypoints(vessels, mask=np.ones((5, 5), np.uint8))


def _dim(image: np.ndarray) -> np.ndarray:
    """The image out of focus and in a third of the light."""
    return np.rint(cv2.GaussianBlur(image, (0, 0), 3) * 0.3).astype(np.uint8)


@pytest.mark.parametrize("name", ["akaze", "kaze"])
def test_weaker_points_are_added_to_a_dark_and_smooth_image(name: str, vessels: np.ndarray) -> None:
    image = _dim(vessels)
    strong = detect_keypoints(image, config=DetectorConfig(name=name, fill_share=1.0))
    filled = detect_keypoints(image, config=DetectorConfig(name=name))
    assert len(filled) > len(strong) + 20
    assert np.array_equal(filled.xy[: len(strong)], strong.xy)
    assert filled.response[len(strong) :].max() < strong.response.min(initial=1e-4)


def test_no_weaker_points_are_added_to_a_textured_image(vessels: np.ndarray) -> None:
    strong = detect_keypoints(vessels, config=DetectorConfig(name="akaze", fill_share=1.0))
    config = DetectorConfig(name="akaze", max_keypoints=2 * len(strong))
    assert len(detect_keypoints(vessels, config=config)) == len(strong)

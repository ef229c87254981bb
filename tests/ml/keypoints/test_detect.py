"""Detection: names, masks, even selection."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import ShapeError, UnknownNameError
from ml.keypoints import DETECTOR_NAMES, DetectorConfig, detect_keypoints
from ml.keypoints.detect import select_even
from ml.types import Keypoints


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_every_detector_gives_documented_shapes(name: str, vessels: np.ndarray) -> None:
    found = detect_keypoints(vessels, config=DetectorConfig(name=name, max_keypoints=150))
    assert 50 < len(found) <= 150
    assert found.xy.shape == (len(found), 2)
    for values in (found.response, found.size_px, found.angle_deg):
        assert values.shape == (len(found),)
        assert values.dtype == np.float32
    assert np.isfinite(found.xy).all()


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_a_direction_is_told_where_the_detector_finds_one(name: str, vessels: np.ndarray) -> None:
    angle = detect_keypoints(vessels, config=DetectorConfig(name=name)).angle_deg
    if name == "kaze":  # turns when it describes
        assert (angle == -1).all()
    else:
        assert len(np.unique(angle)) > 50
        assert ((angle >= 0) & (angle < 360)).all()


def test_nothing_is_found_outside_the_given_mask(vessels: np.ndarray) -> None:
    mask = np.zeros(vessels.shape[:2], np.uint8)
    mask[:, :200] = 255
    found = detect_keypoints(vessels, mask=mask)
    assert len(found)
    assert found.xy[:, 0].max() < 200.5


def test_a_black_image_has_no_key_points() -> None:
    assert len(detect_keypoints(np.zeros((100, 100), np.uint8))) == 0


def test_selection_takes_each_cells_best_first() -> None:
    crowded = np.array([[10, 10], [11, 10], [12, 10], [90, 90]], np.float32)
    response = np.array([5, 9, 7, 1], np.float32)
    points = Keypoints(crowded, response, np.ones(4, np.float32), np.zeros(4, np.float32))
    chosen = select_even(points, shape=(100, 100), count=2, cells=4)
    assert chosen.xy.tolist() == [[11, 10], [90, 90]]


def test_an_unknown_detector_is_named_with_the_known() -> None:
    with pytest.raises(UnknownNameError, match="unknown detector 'surf'; known: akaze, kaze"):
        detect_keypoints(np.zeros((32, 32), np.uint8), config=DetectorConfig(name="surf"))


def test_a_mask_of_another_size_is_refused(vessels: np.ndarray) -> None:
    with pytest.raises(ShapeError, match="mask"):
        detect_keypoints(vessels, mask=np.ones((5, 5), np.uint8))

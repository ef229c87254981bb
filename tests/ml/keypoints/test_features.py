"""Extraction of the features of an image."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import ShapeError, UnknownNameError
from ml.keypoints import load_descriptor
from ml.keypoints.features import extract


def test_features_are_in_pixels_of_the_image(vessels: np.ndarray) -> None:
    features = extract(vessels, descriptor="orb", detector="sift", max_keypoints=120)
    assert len(features.keypoints) == len(features.xy) == len(features.descriptors) <= 120
    assert features.descriptors.shape[1] == load_descriptor("orb").dim
    assert (features.descriptor, features.max_keypoints) == ("orb", 120)
    assert (features.xy >= 0).all()
    assert (features.xy <= (vessels.shape[1] - 1, vessels.shape[0] - 1)).all()
    np.testing.assert_array_equal(features.xy, features.view.to_image(features.keypoints.xy))


def test_key_points_are_inside_the_mask(vessels: np.ndarray) -> None:
    mask = np.zeros(vessels.shape[:2], np.uint8)
    mask[:, :200] = 255
    features = extract(vessels, descriptor="sift", max_keypoints=80, mask=mask)
    assert 40 < len(features.keypoints) <= 80
    assert features.xy[:, 0].max() < 200.5


def test_invalid_images_and_names_raise_an_error(vessels: np.ndarray) -> None:
    with pytest.raises(ShapeError, match="image: expected"):
        extract(np.zeros(7, np.uint8), descriptor="orb")
    with pytest.raises(UnknownNameError, match="descriptor 'surf'"):
        extract(vessels, descriptor="surf")
    with pytest.raises(UnknownNameError, match="detector 'surf'"):
        extract(vessels, descriptor="orb", detector="surf")

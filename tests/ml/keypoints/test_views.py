"""Working views of images."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.errors import ShapeError
from ml.keypoints import views
from ml.keypoints.views import eroded_field_of_view, working_view


def _scope(height: int = 300, width: int = 500, radius: int = 110) -> np.ndarray:
    image = np.zeros((height, width, 3), np.uint8)
    cv2.circle(image, (width // 2, height // 2), radius, (180, 90, 80), -1)
    return image


def test_the_crop_contains_the_field_and_maps_back() -> None:
    view = working_view(_scope())
    assert view.grey.shape[1] < 330
    rows, columns = np.nonzero(view.mask)
    back = view.to_image(np.stack([columns, rows], axis=1))
    assert np.hypot(*(back - (250, 150)).T).max() < 110 - 5
    assert view.scale.tolist() == [1.0, 1.0]


def test_the_rim_is_excluded_with_a_given_mask() -> None:
    image = _scope()
    cv2.circle(image, (250, 150), 110, (255, 255, 255), 3)
    mask = np.full(image.shape[:2], 255, np.uint8)
    np.testing.assert_array_equal(working_view(image, mask=mask).mask, working_view(image).mask)


def test_a_notch_of_the_field_is_excluded() -> None:
    image = _scope()
    cv2.circle(image, (250, 20), 60, (0, 0, 0), -1)
    inside = eroded_field_of_view(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY))
    assert not inside[70, 250]
    assert inside[150, 250]


def test_an_image_without_a_rim_is_not_cropped() -> None:
    assert eroded_field_of_view(np.full((90, 120), 100, np.uint8)).all()
    assert eroded_field_of_view(np.zeros((90, 120), np.uint8)).all()


def test_a_large_image_is_reduced_and_points_map_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MAX_WORK_PX", 10_000)
    image = np.full((200, 400), 120, np.uint8)
    image[99:101, 299:301] = 255  # around (299.5, 99.5)
    view = working_view(image)
    assert view.grey.size <= 10_100
    row, column = np.unravel_index(view.grey.argmax(), view.grey.shape)
    back = view.to_image(np.array([[column, row]], np.float32))
    np.testing.assert_allclose(back, [[299.5, 99.5]], atol=2.0)


def test_image_types_and_an_empty_mask_are_accepted() -> None:
    image = _scope()
    for kind in (image[:, :, 0], image.astype(np.uint16) * 100, np.dstack([image, image[:, :, 0]])):
        assert working_view(kind).image.dtype == np.uint8
    empty = working_view(image, mask=np.zeros(image.shape[:2], np.uint8))
    assert not empty.mask.any()
    assert empty.grey.shape == image.shape[:2]


def test_a_mask_of_another_size_raises_an_error() -> None:
    with pytest.raises(ShapeError, match="mask"):
        working_view(_scope(), mask=np.ones((3, 3), np.uint8))

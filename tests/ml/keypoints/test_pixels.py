"""Conversion of images to 8 bits and grey."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import ShapeError
from ml.keypoints import pixels
from ml.keypoints.pixels import to_grey


@pytest.mark.parametrize("shape", [(20, 30), (20, 30, 1), (20, 30, 3), (20, 30, 4)])
def test_grey_rgb_and_rgba_are_converted_to_grey(shape: tuple[int, ...]) -> None:
    grey = to_grey(np.full(shape, 100, np.uint8))
    assert grey.shape == (20, 30)
    assert grey.dtype == np.uint8
    assert (grey == 100).all()


def test_twelve_bit_values_are_stretched() -> None:
    ramp = np.tile(np.linspace(0, 4095, 64).astype(np.uint16), (32, 1))
    grey = to_grey(ramp)
    assert grey.min() == 0
    assert grey.max() == 255


def test_strips_do_not_change_the_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    y, x = np.mgrid[:120, :200]
    deep = (20 * x + 7 * y).astype(np.uint16)
    expected = pixels.to_u8(deep)
    monkeypatch.setattr(pixels, "STRIP_VALUES", 1_000)  # strips of 5 rows
    np.testing.assert_allclose(pixels.to_u8(deep).astype(int), expected, atol=8)
    spoilt = deep.astype(np.float32)
    spoilt[119, 199] = np.inf
    with pytest.raises(ShapeError, match="finite"):
        pixels.to_u8(spoilt)


@pytest.mark.parametrize(
    ("image", "text"),
    [
        (np.zeros((20, 30, 2), np.uint8), "expected \\(H, W\\)"),
        (np.zeros((4, 30), np.uint8), "at least 16 px"),
        (np.full((20, 30), np.nan), "finite"),
        (np.zeros((20, 30), "U1"), "integer or float"),
    ],
)
def test_invalid_images_raise_an_error_with_their_shape(image: np.ndarray, text: str) -> None:
    with pytest.raises(ShapeError, match=text):
        to_grey(image)

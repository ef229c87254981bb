"""Coded frames: nothing is decoded that is not of the size its object says."""

from __future__ import annotations

import io
import re

import pytest
from PIL import Image

from ml.errors import CorruptFileError, TooLargeError
from ml.imaging.dicom.transfer_syntax import decoded, picture


def _frame(claimed: tuple[int, int] | None = None) -> bytes:
    """A JPEG of 32 x 16 px, which may claim another size."""
    out = io.BytesIO()
    Image.new("RGB", (32, 16), (200, 90, 7)).save(out, "JPEG")
    if claimed is None:
        return out.getvalue()
    width, height = (side.to_bytes(2, "big") for side in claimed)
    size = re.compile(rb"(\xff\xc0..\x08)....", re.DOTALL)
    return size.sub(lambda result: result[1] + height + width, out.getvalue(), count=1)


def test_a_frame_is_decoded_pixel_by_pixel() -> None:
    assert len(decoded(_frame(), size=(32, 16), is_rgb=False)) == 32 * 16 * 3
    assert picture(_frame(), size=(32, 16), is_rgb=False, as_png=True)[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("claimed", "size", "error", "message"),
    [
        ((3000, 3000), (32, 16), CorruptFileError, "3000 x 3000 px, expected 32 x 16"),
        ((5000, 5000), (5000, 5000), TooLargeError, "5,000 x 5,000"),
        ((65_500, 65_500), (65_500, 65_500), CorruptFileError, "cannot be decoded"),
    ],
)
def test_a_frame_that_claims_another_size_or_a_huge_one_is_not_decoded(
    claimed: tuple[int, int], size: tuple[int, int], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        decoded(_frame(claimed), size=size, is_rgb=False)
    with pytest.raises(error, match=message):
        picture(_frame(claimed), size=size, is_rgb=False, as_png=True)

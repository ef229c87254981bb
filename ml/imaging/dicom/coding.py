"""Coded frames: their media types, and what is made of them where something else is asked for."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from ml.errors import CorruptFileError, UnsupportedFormatError
from ml.imaging.limits import require_tile_size
from ml.imaging.slides.jpeg import (
    encode_jpeg,
    read_frame_header,
    standalone_header,
    without_profile,
)

EXPLICIT = "1.2.840.10008.1.2.1"
"""Explicit VR little endian: pixels as they are."""
OCTETS = "application/octet-stream"
_JPEG = "1.2.840.10008.1.2.4."
MEDIA_TYPES = {
    f"{_JPEG}50": "image/jpeg",
    f"{_JPEG}51": "image/jpeg",
    f"{_JPEG}57": "image/jpeg",
    f"{_JPEG}70": "image/jpeg",
    f"{_JPEG}80": "image/jls",
    f"{_JPEG}81": "image/jls",
    f"{_JPEG}90": "image/jp2",
    f"{_JPEG}91": "image/jp2",
    f"{_JPEG}92": "image/jpx",
    f"{_JPEG}93": "image/jpx",
    f"{_JPEG}201": "image/jphc",
    f"{_JPEG}202": "image/jphc",
    f"{_JPEG}203": "image/jphc",
    "1.2.840.10008.1.2.5": "image/dicom-rle",
}
"""Of frames by their transfer syntax: DICOM PS3.18, table 8.7.3-5."""
DECODED = (f"{_JPEG}50", f"{_JPEG}51", f"{_JPEG}90", f"{_JPEG}91")
"""Those that are decoded here."""
_BASELINE = 0xC0  # the marker of a sequential frame of 8 bits: ITU-T T.81, table B.1


def media_type_of(syntax: str) -> str:
    """The media type of a frame stored in this transfer syntax."""
    return MEDIA_TYPES.get(syntax, OCTETS)


def baseline(data: bytes) -> bytes:
    """A JPEG of YCbCr as the baseline profile has it, without its colour profile.

    Raises:
        CorruptFileError: no JPEG.
    """
    plain = without_profile(data)
    if read_frame_header(plain).coding == _BASELINE:
        return plain
    return encode_jpeg(_pixels(plain, None))


def self_told(data: bytes, *, is_rgb: bool) -> bytes:
    """A JPEG that says by itself which colours it has: outside of DICOM nothing else says it."""
    if data[:2] != b"\xff\xd8" or not is_rgb:
        return data
    frame = read_frame_header(data)
    if frame.components != 3 or frame.adobe_transform is not None or frame.has_jfif:
        return data
    return standalone_header(b"", adobe_transform=0, icc_profile=None) + data[2:]


def decoded(data: bytes, *, size: tuple[int, int], is_rgb: bool) -> bytes:
    """The samples of a coded frame: RGB pixel by pixel, or grey.

    Args:
        size: width and height, as the object says them.
        is_rgb: the object says that its samples are RGB.
    Raises:
        CorruptFileError: it cannot be decoded, or is of another size.
        TooLargeError: a frame of this size is not decoded.
    """
    return _pixels(self_told(data, is_rgb=is_rgb), size).tobytes()


def picture(data: bytes, *, size: tuple[int, int], is_rgb: bool, as_png: bool) -> bytes:
    """A coded frame as a picture that browsers show: JPEG, or PNG.

    Args:
        size: width and height, as the object says them.
    Raises:
        CorruptFileError: it cannot be decoded, or is of another size.
        TooLargeError: a frame of this size is not decoded.
    """
    told = self_told(data, is_rgb=is_rgb)
    if not as_png and told[:2] == b"\xff\xd8":
        return told
    return drawn(_pixels(told, size), as_png=as_png)


def drawn(pixels: np.ndarray, *, as_png: bool) -> bytes:
    """Pixels (H, W, 3) or (H, W) uint8 as a picture."""
    out = io.BytesIO()
    image = Image.fromarray(pixels)
    if as_png:
        image.save(out, "PNG", compress_level=1)
    else:
        image.save(out, "JPEG", quality=90)
    return out.getvalue()


def plain_pixels(data: bytes, rows: int, columns: int, samples: int) -> np.ndarray:
    """The samples of a frame that is not coded: (rows, columns, 3) or (rows, columns) uint8.

    Raises:
        UnsupportedFormatError: not of 8 bits, pixel by pixel.
    """
    if len(data) != rows * columns * samples or samples not in (1, 3):
        raise UnsupportedFormatError("only frames of 8 bits, grey or RGB, can be rendered")
    shape = (rows, columns) if samples == 1 else (rows, columns, 3)
    return np.frombuffer(data, np.uint8).reshape(shape)


def _pixels(data: bytes, size: tuple[int, int] | None) -> np.ndarray:
    """Nothing is decoded before its size is known to be the expected one."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            if size is not None and image.size != size:
                raise CorruptFileError(
                    "a frame of the slide has {} x {} px, expected {} x {}".format(
                        *image.size, *size
                    )
                )
            require_tile_size(*image.size)
            return np.asarray(image if image.mode == "L" else image.convert("RGB"))
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise CorruptFileError("a frame of the slide cannot be decoded") from error

"""Coded frames: their media types, and conversion to other media types."""

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
"""Media type of a frame by its transfer syntax: DICOM PS3.18, table 8.7.3-5."""
DECODED = (f"{_JPEG}50", f"{_JPEG}51", f"{_JPEG}90", f"{_JPEG}91")
"""Transfer syntaxes that are decoded here."""
_BASELINE = 0xC0  # the marker of a sequential frame of 8 bits: ITU-T T.81, table B.1


def media_type_of(syntax: str) -> str:
    """The media type of a frame stored in this transfer syntax."""
    return MEDIA_TYPES.get(syntax, OCTETS)


def baseline(data: bytes) -> bytes:
    """Convert a JPEG of YCbCr to the baseline profile, without its colour profile.

    Raises:
        CorruptFileError: no JPEG.
    """
    plain = without_profile(data)
    if read_frame_header(plain).coding == _BASELINE:
        return plain
    return encode_jpeg(_pixels(plain, None))


def with_color_transform(data: bytes, *, is_rgb: bool) -> bytes:
    """Add an Adobe segment to a JPEG of RGB samples, whose colours only the object states."""
    if data[:2] != b"\xff\xd8" or not is_rgb:
        return data
    frame = read_frame_header(data)
    if frame.components != 3 or frame.adobe_transform is not None or frame.has_jfif:
        return data
    return standalone_header(b"", adobe_transform=0, icc_profile=None) + data[2:]


def decoded(data: bytes, *, size: tuple[int, int], is_rgb: bool) -> bytes:
    """Decode the samples of a frame: RGB pixel by pixel, or grey.

    Args:
        size: width and height that the object states.
        is_rgb: the object states RGB samples.
    Raises:
        CorruptFileError: it cannot be decoded, or is of another size.
        TooLargeError: a frame of this size is not decoded.
    """
    return _pixels(with_color_transform(data, is_rgb=is_rgb), size).tobytes()


def picture(data: bytes, *, size: tuple[int, int], is_rgb: bool, as_png: bool) -> bytes:
    """Convert a coded frame to a picture that browsers show: JPEG or PNG.

    Args:
        size: width and height that the object states.
    Raises:
        CorruptFileError: it cannot be decoded, or is of another size.
        TooLargeError: a frame of this size is not decoded.
    """
    colored = with_color_transform(data, is_rgb=is_rgb)
    if not as_png and colored[:2] == b"\xff\xd8":
        return colored
    return drawn(_pixels(colored, size), as_png=as_png)


def drawn(pixels: np.ndarray, *, as_png: bool) -> bytes:
    """Encode pixels (H, W, 3) or (H, W) uint8 as JPEG or PNG."""
    out = io.BytesIO()
    image = Image.fromarray(pixels)
    if as_png:
        image.save(out, "PNG", compress_level=1)
    else:
        image.save(out, "JPEG", quality=90)
    return out.getvalue()


def plain_pixels(data: bytes, rows: int, columns: int, samples: int) -> np.ndarray:
    """Samples of a frame that is not coded: (rows, columns, 3) or (rows, columns) uint8.

    Raises:
        UnsupportedFormatError: not of 8 bits, pixel by pixel.
    """
    if len(data) != rows * columns * samples or samples not in (1, 3):
        raise UnsupportedFormatError("only frames of 8 bits, grey or RGB, can be rendered")
    shape = (rows, columns) if samples == 1 else (rows, columns, 3)
    return np.frombuffer(data, np.uint8).reshape(shape)


def _pixels(data: bytes, size: tuple[int, int] | None) -> np.ndarray:
    """Decode a frame after checking its size."""
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

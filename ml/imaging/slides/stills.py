"""One flat image as 8-bit RGB through libvips (BMP and JPEG 2000 through Pillow), streamed where
possible.
"""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyvips
from PIL import Image, Jpeg2KImagePlugin

from ml.errors import CorruptFileError
from ml.imaging.formats.jpeg2000 import check_jpeg2000, is_jpeg2000
from ml.imaging.formats.sniff import read_head, still_format
from ml.imaging.formats.tiff import TRANSPOSED, is_tiff, read_directories
from ml.imaging.formats.tiff_coding import require_readable
from ml.imaging.limits import require_still_size
from ml.imaging.slides.metadata import plausible_mpp
from ml.types import ImageU8

UM_PER_MM = 1_000.0  # libvips counts pixels per millimetre
_MM_PER_INCH = 25.4  # Pillow counts pixels per inch


def open_still(path: str | Path, *, sequential: bool = False) -> Any:
    """Open an image, upright, as a ``pyvips.Image`` of three 8-bit sRGB-like bands.

    Only the header is read here; the claimed size is checked before anything is decoded. The ICC
    profile stays attached (field "icc-profile-data") and pixel values are not converted by it.

    Args:
        sequential: stream top to bottom once, in bounded memory, instead of random access.
    Raises:
        TooLargeError: the header claims more than the limits.
        CorruptFileError: no decodable image.
    """
    try:
        image = _load(Path(path), "sequential" if sequential else "random")
        require_still_size(image.width, image.height)
        return to_rgb(_upright(image, Path(path)))
    except pyvips.Error as error:
        raise CorruptFileError(f"the image cannot be decoded: {first_line(error)}") from error


def decode_still(path: str | Path) -> ImageU8:
    """Decode a whole image to (H, W, 3) uint8 RGB.

    Raises:
        TooLargeError, CorruptFileError: as ``open_still``; a cut image is refused, not filled up.
    """
    return still_pixels(open_still(path))


def still_pixels(image: Any) -> ImageU8:
    """The pixels of an image of ``open_still``. Raises as ``decode_still``."""
    try:
        return np.asarray(image.numpy(), dtype=np.uint8).reshape(image.height, image.width, 3)
    except pyvips.Error as error:
        raise CorruptFileError(f"the image cannot be decoded: {first_line(error)}") from error


def still_icc_profile(image: Any) -> bytes | None:
    """The ICC profile of an image of ``open_still``, if it is one for RGB."""
    if image.get_typeof("icc-profile-data") == 0:
        return None
    profile = bytes(image.get("icc-profile-data"))
    return profile if profile[16:20] == b"RGB " else None


def still_mpp(image: Any) -> tuple[float | None, float | None]:
    """Microns per pixel from the image's resolution, where plausible."""
    if image.xres <= 0 or image.yres <= 0:
        return None, None
    return plausible_mpp(UM_PER_MM / image.xres, UM_PER_MM / image.yres)


def first_line(error: Exception) -> str:
    """The telling line of a libvips error, without a path."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "/" not in line and "unable to" not in line]
    return (telling or ["unreadable"])[-1][:200]


def _load(path: Path, access: str) -> Any:
    head = read_head(path)
    if head[:2] == b"BM":
        return _load_bmp(path)
    if is_jpeg2000(head):
        return _load_jpeg2000(path)
    # libvips would try every loader it has; one is enough
    name = "tiff" if is_tiff(head) else still_format(head)
    if name == "tiff":  # libvips gives black for strips that it cannot decode
        require_readable(read_directories(path, limit=1)[0], by_openslide=False)
    if not name:
        raise CorruptFileError(
            "the image cannot be decoded: its first bytes are of no known format"
        )
    load = getattr(pyvips.Image, f"{name}load")
    return load(str(path), access=access, fail_on="truncated")


def _load_bmp(path: Path) -> Any:
    Image.MAX_IMAGE_PIXELS = None  # our own limits are checked first
    try:
        with Image.open(io.BytesIO(path.read_bytes()), formats=["BMP"]) as image:
            require_still_size(*image.size)
            return pyvips.Image.new_from_array(np.asarray(image.convert("RGB")))
    except (OSError, ValueError) as error:
        raise CorruptFileError("the BMP image is truncated or damaged") from error


def _load_jpeg2000(path: Path) -> Any:
    """Decoded whole: OpenJPEG in libvips is an option that its wheels lack."""
    check_jpeg2000(path)
    try:
        with Jpeg2KImagePlugin.Jpeg2KImageFile(str(path)) as image:
            deep = image.mode in ("I;16", "RGB", "L")
            plain = (
                image if deep else image.convert("RGBA" if image.has_transparency_data else "RGB")
            )
            made = pyvips.Image.new_from_array(np.asarray(plain))
            profile, dpi = image.info.get("icc_profile"), image.info.get("dpi")
    except (OSError, SyntaxError, ValueError, struct.error) as error:
        raise CorruptFileError("the JPEG 2000 image is truncated or damaged") from error
    if dpi:
        made = made.copy(xres=dpi[0] / _MM_PER_INCH, yres=dpi[1] / _MM_PER_INCH)
    if profile:
        made.set_type(pyvips.GValue.blob_type, "icc-profile-data", profile)
    return made


def _upright(image: Any, path: Path) -> Any:
    if image.get_typeof("orientation") == 0 or image.get("orientation") == 1:
        return image
    # a turned image cannot be streamed top to bottom
    stored = _load(path, "random")
    turned = stored.autorot()
    if stored.get("orientation") in TRANSPOSED:  # libvips leaves the resolution as it is stored
        return turned.copy(xres=stored.yres, yres=stored.xres)
    return turned


def to_rgb(image: Any) -> Any:
    """Three 8-bit bands of whatever bands and depth there are; alpha becomes white."""
    if image.interpretation in ("cmyk", "lab", "labs", "scrgb") or image.format not in (
        "uchar",
        "ushort",
    ):
        image = image.colourspace("srgb")
    if image.format == "ushort":
        image = (image >> 8).cast("uchar")
    if image.hasalpha():
        image = image.flatten(background=[255] * (image.bands - 1))
    if image.bands != 3:
        image = image.extract_band(0)
        image = image.bandjoin([image, image])
    return image.cast("uchar").copy(interpretation="srgb")

"""Flat images by libvips (BMP and JPEG 2000 by Pillow), streamed if possible."""

from __future__ import annotations

import io
import math
import struct
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyvips
from PIL import Image, Jpeg2KImagePlugin

from ml.errors import CorruptFileError, UnsupportedFormatError
from ml.imaging.formats.jpeg2000 import check_jpeg2000, is_jpeg2000, jpeg2000_bits
from ml.imaging.formats.sniff import read_head, still_format
from ml.imaging.formats.tiff import TRANSPOSED, TiffDirectory
from ml.imaging.formats.tiff_coding import WHITE_IS_ZERO, is_deep, require_readable
from ml.imaging.formats.tiff_fields import is_tiff
from ml.imaging.formats.tiff_layout import read_layout
from ml.imaging.limits import require_still_size
from ml.imaging.slides.display_range import Values, range_of, shown, stated_depth
from ml.imaging.slides.metadata import layout_mpp, plausible_mpp, rgb_profile
from ml.types import DisplayRange, ImageU8

UM_PER_MM = 1_000.0  # libvips counts pixels per millimetre
_CONVERTED_COLORS = ("cmyk", "lab", "labs")
"""Interpretations of libvips that are converted to RGB."""
_FULL = {"char": 127, "uchar": 255, "short": 32_767, "ushort": 65_535} | {
    "int": 2**31 - 1, "uint": 2**32 - 1, "float": 1.0
}  # fmt: skip
"""The value from which libvips takes the others of each format if zero is white."""
_RGB_BANDS, _BYTE_BITS = 3, 8
_SAMPLE_PX = 2_048  # side of the picture from which a range is taken
_MM_PER_INCH = 25.4  # Pillow counts pixels per inch


def open_still(path: str | Path, *, sequential: bool = False) -> Any:
    """Open an image, upright, as a ``pyvips.Image``.

    It has three 8-bit sRGB-like bands, or the stored values where these have more than 8 bits
    (``is_deep_image``), then with all their bands. Only the header is read here; the
    claimed size is checked before anything is decoded. The ICC profile stays attached (field
    "icc-profile-data") and pixel values are not converted by it.

    Args:
        sequential: stream top to bottom once, in bounded memory, instead of random access.
    Raises:
        TooLargeError: the header claims more than the limits.
        UnsupportedFormatError: pixels in a coding that cannot be read.
        CorruptFileError: no decodable image.
    """
    try:
        image = _load(Path(path), "sequential" if sequential else "random")
        require_still_size(image.width, image.height)
        image = _upright(image, Path(path))
        return image if is_deep_image(image) else to_rgb(image)
    except pyvips.Error as error:
        raise CorruptFileError(f"the image cannot be decoded: {first_line(error)}") from error


def decode_still(path: str | Path) -> ImageU8:
    """Decode a whole image to (H, W, 3) uint8 RGB.

    Raises:
        TooLargeError, UnsupportedFormatError, CorruptFileError: as ``open_still``; a cut image is
            rejected, not filled up.
    """
    image = open_still(path)
    pixels = still_values(image)
    if not is_deep_image(image):
        return pixels
    display_range = range_of(pixels, stated_depth(Path(path)))
    return shown(pixels, display_range, has_alpha=image.hasalpha())


def still_values(image: Any) -> Values:
    """The stored values of an image of ``open_still``, (H, W, C). Raises as ``decode_still``."""
    try:
        values: Values = image.numpy().reshape(image.height, image.width, image.bands)
    except pyvips.Error as error:
        raise CorruptFileError(f"the image cannot be decoded: {first_line(error)}") from error
    return values


def still_range(path: str | Path) -> DisplayRange | None:
    """Display range of the values of an image, None if they have 8 bits.

    The image is streamed, in bounded memory. Raises as ``decode_still``.
    """
    image = open_still(path, sequential=True)
    if not is_deep_image(image):
        return None
    step = math.ceil(max(image.width, image.height) / _SAMPLE_PX)
    colors = image.extract_band(0, n=image.bands - 1) if image.hasalpha() else image
    values = still_values(colors.subsample(step, step) if step > 1 else colors)
    return range_of(values, stated_depth(Path(path)))


def is_deep_image(image: Any) -> bool:
    """Return whether an image needs a display range: more than 8 bits, or signed."""
    return image.format != "uchar" and image.interpretation not in _CONVERTED_COLORS


def still_icc_profile(image: Any) -> bytes | None:
    """The ICC profile of an image of ``open_still``, if it is one for RGB."""
    if image.get_typeof("icc-profile-data") == 0:
        return None
    return rgb_profile(bytes(image.get("icc-profile-data")))


def still_mpp(image: Any) -> tuple[float | None, float | None]:
    """Microns per pixel from the image's resolution, where plausible."""
    if image.xres <= 0 or image.yres <= 0:
        return None, None
    return plausible_mpp(UM_PER_MM / image.xres, UM_PER_MM / image.yres)


def first_line(error: Exception) -> str:
    """Most informative line of a libvips error, without a path."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    informative = [line for line in lines if "/" not in line and "unable to" not in line]
    return (informative or ["unreadable"])[-1][:200]


def load_directory(path: Path, directory: TiffDirectory, *, access: str = "random") -> Any:
    """Load the stored image of a directory by libvips."""
    # revalidate: a handle that another process opened would share its file offset
    return pyvips.Image.tiffload(
        str(path),
        page=directory.page,
        subifd=directory.sub_ifd,
        access=access,
        fail_on="truncated",
        revalidate=True,
    )


def _load(path: Path, access: str) -> Any:
    head = read_head(path)
    if head[:2] == b"BM":
        return _load_bmp(path)
    if is_jpeg2000(head):
        return _load_jpeg2000(path)
    if is_tiff(head):
        return _load_tiff(path, access)
    # libvips would try every loader it has; one is enough
    name = still_format(head)
    if not name:
        raise CorruptFileError(
            "the image cannot be decoded: its first bytes are of no known format"
        )
    load = getattr(pyvips.Image, f"{name}load")
    return load(str(path), access=access, fail_on="truncated")


def _load_tiff(path: Path, access: str) -> Any:
    """Load the largest image of a file, with its scale."""
    layout = read_layout(path)
    # libvips gives black for strips that it cannot decode
    require_readable(layout.levels[0], by_openslide=False)
    image = as_stored(load_directory(path, layout.levels[0], access=access), layout.levels[0])
    mpp_x, mpp_y = layout_mpp(layout)
    if mpp_x is None or mpp_y is None:
        return image
    return image.copy(xres=UM_PER_MM / mpp_x, yres=UM_PER_MM / mpp_y)


def _load_bmp(path: Path) -> Any:
    Image.MAX_IMAGE_PIXELS = None  # our own limits are checked first
    try:
        with Image.open(io.BytesIO(path.read_bytes()), formats=["BMP"]) as image:
            require_still_size(*image.size)
            return pyvips.Image.new_from_array(np.asarray(image.convert("RGB")))
    except (OSError, ValueError) as error:
        raise CorruptFileError("the BMP image is truncated or damaged") from error


def _load_jpeg2000(path: Path) -> Any:
    """Decode by Pillow, since the wheels of libvips lack OpenJPEG."""
    check_jpeg2000(path)
    try:
        with Jpeg2KImagePlugin.Jpeg2KImageFile(str(path)) as image:
            bits, components = jpeg2000_bits(path)
            if bits > _BYTE_BITS:
                decoded = _load_deep_jpeg2000(path, components)
            else:
                mode = "RGBA" if image.has_transparency_data else "RGB"
                pixels = np.asarray(image if image.mode in ("RGB", "L") else image.convert(mode))
                kind = "b-w" if pixels.ndim < _RGB_BANDS else "srgb"
                decoded = pyvips.Image.new_from_array(pixels, interpretation=kind)
            profile, dpi = image.info.get("icc_profile"), image.info.get("dpi")
    except (OSError, SyntaxError, ValueError, struct.error) as error:
        raise CorruptFileError("the JPEG 2000 image is truncated or damaged") from error
    if dpi:
        decoded = decoded.copy(xres=dpi[0] / _MM_PER_INCH, yres=dpi[1] / _MM_PER_INCH)
    if profile:
        decoded.set_type(pyvips.GValue.blob_type, "icc-profile-data", profile)
    return decoded


def _load_deep_jpeg2000(path: Path, components: int) -> Any:
    """Decode by OpenCV, since Pillow reduces colours to 8 bits."""
    if components not in (1, 3, 4):
        raise UnsupportedFormatError(
            f"the JPEG 2000 image has {components} components of more than 8 bits, which cannot "
            "be read; save it as grey, RGB or RGBA"
        )
    pixels = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    if pixels is None:
        raise CorruptFileError("the JPEG 2000 image is truncated or damaged")
    if components == 1:
        return pyvips.Image.new_from_array(np.asarray(pixels), interpretation="grey16")
    order = cv2.COLOR_BGR2RGB if components == _RGB_BANDS else cv2.COLOR_BGRA2RGBA
    return pyvips.Image.new_from_array(cv2.cvtColor(pixels, order), interpretation="rgb16")


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
    """Convert 8-bit bands to three of RGB; alpha becomes white."""
    if image.interpretation in _CONVERTED_COLORS:
        image = image.colourspace("srgb")
    if image.hasalpha():
        image = image.flatten(background=[255] * (image.bands - 1))
    if image.bands < _RGB_BANDS:
        image = image.extract_band(0)
        image = image.bandjoin([image, image])
    return image.extract_band(0, n=_RGB_BANDS).cast("uchar").copy(interpretation="srgb")


def as_stored(image: Any, directory: TiffDirectory) -> Any:
    """Restore the stored values of a TIFF image, which libvips inverts if zero is white."""
    if directory.photometric != WHITE_IS_ZERO or not is_deep(directory):
        return image
    return (_FULL[image.format] - image).cast(image.format)

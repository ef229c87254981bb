"""Pixel coding of a TIFF, with the names of codings that cannot be read."""

from __future__ import annotations

from enum import IntEnum

from ml.errors import UnsupportedFormatError
from ml.imaging.formats.tiff import APERIO_JPEG2000, TiffDirectory

UNSIGNED, SIGNED, FLOAT, UNDEFINED = 1, 2, 3, 4
"""Values of the tag SampleFormat: TIFF 6.0, section 19."""
WHITE_IS_ZERO, BLACK_IS_ZERO, RGB, PALETTE, CMYK, YCBCR = 0, 1, 2, 3, 5, 6
"""Values of the tag PhotometricInterpretation that are read."""
ZSTD = 50_000
_BY_LIBVIPS = (1, 2, 3, 4, 5, 7, 8, 32_773, 32_946, 50_001)
_BY_OPENSLIDE = (1, 2, 3, 4, 5, 7, 8, 32_773, 32_946, ZSTD)
"""Values of the tag Compression that the libraries decode; each carries a libtiff of its own."""
_SAMPLES = {UNSIGNED: "whole", SIGNED: "signed whole", FLOAT: "floating-point", 5: "complex whole"}
_READ_BITS = {UNSIGNED: (1, 2, 4, 8, 16, 32), SIGNED: (8, 16, 32), FLOAT: (32,)}
_BYTE = 8


def compression_name(number: int) -> str:
    """Name of a value of the tag Compression, or the number."""
    from tifffile import COMPRESSION  # an eighth of a second, for errors only

    return _name(COMPRESSION, number)


def _name(values: type[IntEnum], number: int) -> str:
    try:
        return values(number).name.removesuffix("_DEPRECATED").replace("_", " ")
    except ValueError:
        return str(number)


def is_plain(directory: TiffDirectory) -> bool:
    """Return whether OpenSlide shows the pixels rightly: 8-bit grey or RGB, or a palette."""
    bits = _BYTE if directory.photometric != PALETTE else directory.bits[0]
    return (
        directory.sample_format in (UNSIGNED, UNDEFINED)
        and set(directory.bits) == {bits}
        and directory.photometric != CMYK
        and directory.compression in (*_BY_OPENSLIDE, *APERIO_JPEG2000)
    )


def is_deep(directory: TiffDirectory) -> bool:
    """Return whether samples need a display range: more than 8 bits, or signed."""
    return directory.sample_format in (SIGNED, FLOAT) or directory.bits[0] > _BYTE


def require_readable(directory: TiffDirectory, *, by_openslide: bool) -> None:
    """Refuse pixels that no library here decodes.

    Args:
        by_openslide: OpenSlide decodes them, not libvips.
    Raises:
        UnsupportedFormatError: names the compression, the colours or the samples.
    """
    readable = (*_BY_OPENSLIDE, *APERIO_JPEG2000) if by_openslide else _BY_LIBVIPS
    if directory.compression not in readable:
        raise UnsupportedFormatError(
            f"the TIFF file is compressed with {compression_name(directory.compression)}, which "
            "cannot be read; save it with JPEG, LZW, Deflate or no compression"
        )
    if directory.photometric not in (WHITE_IS_ZERO, BLACK_IS_ZERO, RGB, PALETTE, CMYK, YCBCR):
        from tifffile import PHOTOMETRIC

        name = _name(PHOTOMETRIC, directory.photometric)
        raise UnsupportedFormatError(
            f"the TIFF file stores colours as {name}, which cannot be read; save it as RGB or grey"
        )
    sample_format = UNSIGNED if directory.sample_format == UNDEFINED else directory.sample_format
    allowed = _READ_BITS.get(sample_format, ())
    if directory.photometric in (PALETTE, CMYK, YCBCR):
        allowed = tuple(bits for bits in allowed if bits <= _BYTE)
    if directory.samples > 1:
        allowed = tuple(bits for bits in allowed if bits >= _BYTE)
    if len(set(directory.bits)) != 1 or directory.bits[0] not in allowed:
        bits = " and ".join(str(depth) for depth in sorted(set(directory.bits)))
        kind = _SAMPLES.get(sample_format, "complex")
        raise UnsupportedFormatError(
            f"the TIFF file stores {kind} numbers of {bits} bits, which cannot be read; save it "
            "with 8 or 16 bits for each sample, or with floating-point numbers of 32 bits"
        )

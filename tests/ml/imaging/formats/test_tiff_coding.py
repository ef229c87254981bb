"""Codings of TIFF pixels: read as they are meant, or refused by their name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvips
import tifffile

from ml.errors import UnsupportedFormatError
from ml.imaging.ingest import inspect_slide
from ml.imaging.slides.slide import open_slide
from ml.types import ImageU8

TILED, STRIPS = {"tile": (128, 128)}, {"rowsperstrip": 64}
COMPRESSION, PHOTOMETRIC, BITS, SAMPLE_FORMAT = 259, 262, 258, 339


def write(path: Path, pixels: Any, **options: Any) -> Path:
    tifffile.imwrite(path, pixels, **({"metadata": None, "photometric": "rgb"} | options))
    return path


def restate(path: Path, tag: int, value: int) -> None:
    """Let the first directory state another value."""
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        tiff.pages.first.tags[tag].overwrite(value)


def shown(path: Path, pixels: Any) -> ImageU8:
    size = (pixels.shape[1], pixels.shape[0])
    with open_slide(path) as slide:
        return slide.read_region((0, 0), size, size)


@pytest.mark.parametrize("layout", [TILED, STRIPS], ids=["tiles", "strips"])
@pytest.mark.parametrize(
    ("compression", "name"),
    [
        ("jpegxl", "JPEGXL"),
        ("lerc", "LERC"),
        ("jpegxr", "JPEGXR"),
        ("jpeg2000", "JPEG2000"),
        ("lzma", "LZMA"),
        ("png", "PNG"),
    ],
)
def test_an_unsupported_compression_is_refused_by_name(
    tmp_path: Path, gradient: ImageU8, compression: str, name: str, layout: dict[str, Any]
) -> None:
    path = write(tmp_path / "a.tif", gradient, compression=compression, **layout)
    with pytest.raises(UnsupportedFormatError, match=f"with {name}, which cannot be read; save"):
        inspect_slide(path=str(path), out_dir=str(tmp_path))


@pytest.mark.parametrize("layout", [TILED, STRIPS], ids=["tiles", "strips"])
@pytest.mark.parametrize(("number", "name"), [(6, "OJPEG"), (34_661, "JBIG"), (61_000, "61000")])
def test_a_compression_that_no_library_writes_is_refused_by_name(
    tmp_path: Path, gradient: ImageU8, number: int, name: str, layout: dict[str, Any]
) -> None:
    path = write(tmp_path / "a.tif", gradient, **layout)
    restate(path, COMPRESSION, number)
    with pytest.raises(UnsupportedFormatError, match=name):
        open_slide(path)


@pytest.mark.parametrize("layout", [TILED, STRIPS], ids=["tiles", "strips"])
@pytest.mark.parametrize(
    ("number", "name"), [(8, "CIELAB"), (9, "ICCLAB"), (32_803, "CFA"), (60_000, "60000")]
)
def test_unsupported_colours_are_refused_by_name(
    tmp_path: Path, gradient: ImageU8, number: int, name: str, layout: dict[str, Any]
) -> None:
    path = write(tmp_path / "a.tif", gradient, **layout)
    restate(path, PHOTOMETRIC, number)
    with pytest.raises(UnsupportedFormatError, match=f"{name}.*save it as RGB or grey"):
        open_slide(path)


@pytest.mark.parametrize("layout", [TILED, STRIPS], ids=["tiles", "strips"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("float16", "floating-point numbers of 16 bits"),
        ("float64", "floating-point numbers of 64 bits"),
        ("uint64", "whole numbers of 64 bits"),
        ("int64", "signed whole numbers of 64 bits"),
        ("complex64", "complex"),
    ],
)
def test_unsupported_samples_are_refused_by_name(
    tmp_path: Path, gradient: ImageU8, kind: str, name: str, layout: dict[str, Any]
) -> None:
    grey = gradient[..., 0].astype(kind)
    path = write(tmp_path / "a.tif", grey, photometric="minisblack", **layout)
    with pytest.raises(UnsupportedFormatError, match=name):
        open_slide(path)


@pytest.mark.parametrize("bits", [10, 12, 14])
def test_packed_bits_are_refused_by_name(tmp_path: Path, gradient: ImageU8, bits: int) -> None:
    grey = gradient[..., 0].astype(np.uint16)
    path = write(tmp_path / "a.tif", grey, photometric="minisblack", bitspersample=bits, **TILED)
    with pytest.raises(UnsupportedFormatError, match=f"numbers of {bits} bits"):
        open_slide(path)


@pytest.mark.parametrize("layout", [TILED, STRIPS], ids=["tiles", "strips"])
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_images_of_few_bits_are_read(
    tmp_path: Path, gradient: ImageU8, bits: int, layout: dict[str, Any]
) -> None:
    grey = gradient[..., 0] >> (8 - bits)
    path = write(tmp_path / "a.tif", grey, photometric="minisblack", bitspersample=bits, **layout)
    assert np.array_equal(shown(path, grey)[..., 0], grey * (255 // (2**bits - 1)))


@pytest.mark.parametrize("layout", [TILED, STRIPS], ids=["tiles", "strips"])
def test_a_picture_of_two_values_is_read(
    tmp_path: Path, gradient: ImageU8, layout: dict[str, Any]
) -> None:
    mask = gradient[..., 0] > 100
    path = write(tmp_path / "a.tif", mask, photometric="minisblack", **layout)
    assert np.array_equal(shown(path, mask)[..., 0] == 255, mask)


@pytest.mark.parametrize("is_tiled", [True, False])
def test_fax_coded_pictures_are_read(tmp_path: Path, gradient: ImageU8, is_tiled: bool) -> None:
    mask = np.where(gradient[..., 0] > 100, 255, 0).astype(np.uint8)
    image = pyvips.Image.new_from_array(mask)
    options = {"tile_width": 128, "tile_height": 128} if is_tiled else {}
    path = tmp_path / "a.tif"
    image.tiffsave(str(path), compression="ccittfax4", bitdepth=1, tile=is_tiled, **options)
    assert np.array_equal(shown(path, mask)[..., 0], mask)


@pytest.mark.parametrize("layout", [TILED, STRIPS], ids=["tiles", "strips"])
def test_palettes_are_read(tmp_path: Path, gradient: ImageU8, layout: dict[str, Any]) -> None:
    ramp = np.arange(256, dtype=np.uint16) * 257
    colours = np.stack([ramp, ramp[::-1], np.full_like(ramp, 257 * 60)])
    grey = gradient[..., 0]
    path = write(tmp_path / "a.tif", grey, photometric="palette", colormap=colours, **layout)
    expected = np.stack([grey, 255 - grey, np.full_like(grey, 60)], axis=-1)
    assert np.array_equal(shown(path, grey), expected)


@pytest.mark.parametrize("compression", [None, "webp", "zstd", "packbits"])
def test_lossless_tiles_of_eight_bits_are_read(
    tmp_path: Path, gradient: ImageU8, compression: str | None
) -> None:
    options = {"compressionargs": {"lossless": True}} if compression == "webp" else {}
    path = write(tmp_path / "a.tif", gradient, compression=compression, **TILED, **options)
    assert np.array_equal(shown(path, gradient), gradient)


def test_cmyk_has_the_same_colours_in_tiles_and_strips(tmp_path: Path, gradient: ImageU8) -> None:
    inks = np.concatenate([255 - gradient, np.zeros_like(gradient[..., :1])], axis=-1)
    tiled = write(tmp_path / "t.tif", inks, photometric="separated", **TILED)
    strips = write(tmp_path / "s.tif", inks, photometric="separated", **STRIPS)
    assert np.array_equal(shown(tiled, inks), shown(strips, inks))
    assert np.corrcoef(shown(tiled, inks)[..., 0].ravel(), gradient[..., 0].ravel())[0, 1] > 0.9

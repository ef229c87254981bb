"""Pixels of more than 8 bits: the range in which they are shown, in tiles, regions and stills."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
import tifffile
from PIL import Image

from ml.errors import UnsupportedFormatError
from ml.imaging.ingest import inspect_slide
from ml.imaging.query_image import PICTURE_NAME, make_query_image
from ml.imaging.slides.display_range import StatedDepth, range_of, sampled, shown
from ml.imaging.slides.patches import SlidePatches
from ml.imaging.slides.prefetch import PatchRequest, PrefetchPool
from ml.imaging.slides.slide import open_slide
from ml.imaging.slides.tiles import TileSource
from ml.types import DisplayRange, ImageU8

WIDTH, HEIGHT = 384, 256
STORED, DISPLAYED = (400, 1600, 2800, 4000), (25, 100, 174, 249)
"""Values of a camera of 12 bits in four quadrants, and the same of 255."""


def quadrants(kind: str = "uint16", values: tuple[int, ...] = STORED) -> Any:
    grey = np.zeros((HEIGHT, WIDTH), np.float64)
    for number, value in enumerate(values):
        row, column = divmod(number, 2)
        grey[row * 128 :, column * 192 :][:128, :192] = value
    return grey.astype(kind)


def of_quadrants(rgb: ImageU8) -> tuple[int, ...]:
    """The red of the middle of each quadrant."""
    height, width = rgb.shape[:2]
    places = [(y, x) for y in (height // 4, 3 * height // 4) for x in (width // 4, 3 * width // 4)]
    return tuple(int(rgb[place][0]) for place in places)


def write_tiff(path: Path, pixels: Any, *, is_tiled: bool = True, **options: Any) -> Path:
    layout = {"tile": (128, 128)} if is_tiled else {"rowsperstrip": 64}
    plain = {"photometric": "minisblack", "metadata": None, "compression": "deflate"}
    tifffile.imwrite(path, pixels, **(plain | layout | options))
    return path


def ingested(path: Path, folder: Path) -> tuple[DisplayRange | None, Path]:
    """The range found by the ingest of a file, and the file that has its tiles."""
    folder.mkdir(exist_ok=True)
    inspection = inspect_slide(path=str(path), out_dir=str(folder))
    stored: Any = inspection["display_range"]
    assert np.abs(thumbnail(folder).astype(int) - thumbnail(folder)[..., :1]).max() <= 3
    pixels: Any = inspection["pixels"]
    return DisplayRange(**stored) if stored else None, folder / pixels if pixels else path


def thumbnail(folder: Path) -> ImageU8:
    return np.asarray(Image.open(folder / "thumbnail.jpg"))


def everywhere(path: Path, folder: Path) -> list[tuple[int, ...]]:
    """The quadrants as a region, a tile, and the thumbnail that the ingest wrote."""
    display_range, pixels = ingested(path, folder)
    size = (WIDTH, HEIGHT)
    with TileSource(pixels, display_range=display_range) as source:
        region = source.region((0, 0), size, size)
        coarse = len(source.levels) - 1
        tile = np.asarray(Image.open(io.BytesIO(source.tile(coarse, 0, 0).data)))
    first = int(tile[40, 40, 0])
    return [of_quadrants(region), of_quadrants(thumbnail(folder)), (first,)]


def assert_displayed(path: Path, folder: Path, displayed: tuple[int, ...] = DISPLAYED) -> None:
    region, small, (first,) = everywhere(path, folder)
    assert region == displayed
    assert np.abs(np.subtract(small, displayed)).max() <= 2
    assert abs(first - displayed[0]) <= 2


@pytest.mark.parametrize("is_tiled", [True, False])
@pytest.mark.parametrize("kind", ["uint16", "int16", "uint32", "int32", "float32"])
def test_twelve_bits_in_wider_numbers_are_displayed(
    tmp_path: Path, kind: str, is_tiled: bool
) -> None:
    path = write_tiff(tmp_path / "a.tif", quadrants(kind), is_tiled=is_tiled)
    assert_displayed(path, tmp_path / "out")


@pytest.mark.parametrize("is_tiled", [True, False])
def test_sixteen_bit_colours_are_displayed_like_eight_bit(tmp_path: Path, is_tiled: bool) -> None:
    rgb = np.repeat(quadrants()[..., None], 3, axis=-1)
    path = write_tiff(tmp_path / "a.tif", rgb, is_tiled=is_tiled, photometric="rgb")
    assert_displayed(path, tmp_path / "out")


@pytest.mark.parametrize("is_tiled", [True, False])
def test_transparent_sixteen_bit_pixels_are_displayed_white(tmp_path: Path, is_tiled: bool) -> None:
    opaque = np.full((HEIGHT, WIDTH), 65_535, np.uint16)
    opaque[:, 192:] = 0
    rgba = np.stack([quadrants()] * 3 + [opaque], axis=-1)
    options = {"photometric": "rgb", "extrasamples": ["unassalpha"]}
    path = write_tiff(tmp_path / "a.tif", rgba, is_tiled=is_tiled, **options)
    assert_displayed(path, tmp_path / "out", (25, 255, 174, 255))


def test_a_png_of_sixteen_bits_is_displayed(tmp_path: Path) -> None:
    Image.fromarray(quadrants()).save(tmp_path / "a.png")
    assert_displayed(tmp_path / "a.png", tmp_path / "out")


@pytest.mark.parametrize("bits", [12, 16])
@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_2000_of_any_bit_depth_is_displayed(tmp_path: Path, bits: int, channels: int) -> None:
    grey = quadrants()
    pixels = grey if channels == 1 else np.repeat(grey[..., None], 3, axis=-1)
    data = imagecodecs.jpeg2k_encode(pixels, level=0, codecformat="jp2", bitspersample=bits)
    (tmp_path / "a.jp2").write_bytes(data)
    assert_displayed(tmp_path / "a.jp2", tmp_path / "out")


@pytest.mark.parametrize("is_tiled", [True, False])
def test_floats_are_displayed_from_zero_to_one(tmp_path: Path, is_tiled: bool) -> None:
    share = quadrants("float32") / np.float32(4095)
    path = write_tiff(tmp_path / "a.tif", share, is_tiled=is_tiled)
    assert_displayed(path, tmp_path / "out")


@pytest.mark.parametrize("is_tiled", [True, False])
def test_images_with_inverted_grey_are_displayed(tmp_path: Path, is_tiled: bool) -> None:
    path = write_tiff(tmp_path / "a.tif", quadrants(), is_tiled=is_tiled, photometric="miniswhite")
    assert_displayed(path, tmp_path / "out", (230, 155, 81, 6))


@pytest.mark.parametrize("is_tiled", [True, False])
@pytest.mark.parametrize(
    "stated",
    [
        {"extratags": [(281, "H", 1, 4095, True)]},
        {"description": '<OME><Image><Pixels SignificantBits="12"/></Image></OME>'},
    ],
    ids=["MaxSampleValue", "OME"],
)
def test_stated_bits_have_priority_over_values(
    tmp_path: Path, stated: dict[str, Any], is_tiled: bool
) -> None:
    dark = quadrants(values=(100, 200, 300, 400))
    path = write_tiff(tmp_path / "a.tif", dark, is_tiled=is_tiled, **stated)
    assert ingested(path, tmp_path / "out")[0] == DisplayRange(0.0, 4095.0)


@pytest.mark.parametrize("stated", [255, 65_535])
def test_a_contradicted_or_empty_display_range_is_ignored(tmp_path: Path, stated: int) -> None:
    tags = [(281, "H", 1, stated, True)]
    path = write_tiff(tmp_path / "a.tif", quadrants(), extratags=tags)
    assert_displayed(path, tmp_path / "out")


def test_eight_bits_have_no_range(tmp_path: Path, gradient: ImageU8) -> None:
    grey = np.repeat(gradient[..., :1], 3, axis=-1)
    path = write_tiff(tmp_path / "a.tif", grey, photometric="rgb")
    assert ingested(path, tmp_path / "out")[0] is None


def test_the_display_range_changes_the_image(tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "a.tif", quadrants())
    wanted = DisplayRange(1600, 2800)
    with open_slide(path, display_range=wanted) as slide:
        assert slide.info.display_range == wanted
        region = slide.read_region((0, 0), (WIDTH, HEIGHT), (WIDTH, HEIGHT))
    assert of_quadrants(region) == (0, 0, 255, 255)


def test_the_levels_are_the_same_in_every_range(tmp_path: Path) -> None:
    noise = np.random.default_rng(3).integers(1500, 2500, (1024, 1536)).astype(np.uint16)
    halved = noise.reshape(512, 2, 768, 2).mean(axis=(1, 3)).astype(np.uint16)
    options: Any = {"photometric": "minisblack", "tile": (128, 128), "metadata": None}
    for name in ("a.tif", "b.tif"):  # the levels of a file are kept for the process
        with tifffile.TiffWriter(tmp_path / name) as tiff:
            tiff.write(noise, **options)
            tiff.write(halved, subfiletype=1, **options)
    with open_slide(tmp_path / "a.tif") as result:
        expected = result.info.levels
    with open_slide(tmp_path / "b.tif", display_range=DisplayRange(1900, 1910)) as narrow:
        assert narrow.info.levels == expected
    assert len([level for level in expected if level.stored]) == 2


def test_a_few_hot_pixels_do_not_darken_a_picture(tmp_path: Path) -> None:
    grey = quadrants()
    grey[7, 7] = grey[100, 50] = 65_535
    with open_slide(write_tiff(tmp_path / "a.tif", grey)) as slide:
        assert slide.info.display_range == DisplayRange(0.0, 4095.0)


def test_a_query_picture_is_displayed_in_the_same_range(tmp_path: Path) -> None:
    Image.fromarray(quadrants()).save(tmp_path / "a.png")
    make_query_image(path=str(tmp_path / "a.png"), out_dir=str(tmp_path))
    assert of_quadrants(np.asarray(Image.open(tmp_path / PICTURE_NAME))) == DISPLAYED


def test_prefetched_patches_have_the_same_range(tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "a.tif", quadrants())
    readers = PrefetchPool(1)
    try:
        with open_slide(path, display_range=DisplayRange(0, 8190)) as slide:
            plain = SlidePatches(slide, downsample=1.0, corners_px=[(0, 0)], patch_px=64)
            request = PatchRequest(path, 1.0, [(0, 0)], 64, slide.info.display_range)
            source = readers.start(request, lambda: plain)
            assert source.read((0, 0), 64)[5, 5, 0] == plain.read((0, 0), 64)[5, 5, 0] == 12
    finally:
        readers.close()


def test_deep_grey_with_opacity_in_jpeg_2000_is_refused_by_name(tmp_path: Path) -> None:
    two = np.stack([quadrants(), quadrants()], axis=-1)
    (tmp_path / "a.jp2").write_bytes(imagecodecs.jpeg2k_encode(two, level=0))
    with pytest.raises(UnsupportedFormatError, match="2 components"):
        open_slide(tmp_path / "a.jp2")


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (np.array([0, 4000], np.uint16), 0, 4095),
        (np.array([0, 5000], np.uint16), 0, 8191),
        (np.array([3, 7], np.uint16), 0, 255),
        (np.array([3, 7], np.int8), 0, 127),
        (np.array([0.0, 0.7, np.nan], np.float32), 0, 1),
        (np.array([np.nan, np.inf], np.float32), 0, 1),
        (np.array([-100, 300], np.int16), -100, 300),
        (np.array([0.5, 2.5], np.float32), 0.5, 2.5),
    ],
)
def test_the_range_is_derived_from_the_values(values: Any, low: float, high: float) -> None:
    stated = range_of(values, StatedDepth())
    assert (stated.low, stated.high) == pytest.approx((low, high), rel=0.01, abs=0.01)


def test_values_outside_the_range_and_nan_are_black_or_white() -> None:
    values = np.array([[-5, 0, 5, 10, 99, np.nan]], np.float32)
    displayed = shown(values, DisplayRange(0, 10))
    assert displayed[0, :, 0].tolist() == [0, 0, 128, 255, 255, 0]
    assert shown(values, DisplayRange(10, 0))[0, :4, 0].tolist() == [255, 255, 128, 0]


def test_a_large_image_is_sampled() -> None:
    reads: list[tuple[int, int, int, int]] = []

    def read(x: int, y: int, width: int, height: int) -> Any:
        reads.append((x, y, width, height))
        return np.full((height, width), len(reads), np.uint16)

    values = sampled(read, 100_000, 50_000)
    assert (len(reads), values.size) == (64, 64 * 128 * 128)
    assert max(x + w for x, _, w, _ in reads) == 100_000
    assert max(y + h for _, y, _, h in reads) == 50_000

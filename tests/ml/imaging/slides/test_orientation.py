"""Tiled TIFFs whose tag Orientation says that the stored pixels are turned or mirrored."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image

from ml.errors import UnsupportedFormatError
from ml.imaging.deidentification.single_file import deidentify
from ml.imaging.ingest import inspect_slide
from ml.imaging.slides.slide import open_slide
from ml.imaging.slides.tiles import TileSource
from ml.types import ImageU8

ORIENTATIONS = range(2, 9)
STORED_FROM_SHOWN = {
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: np.rot90,
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: np.rot90(a, -1),
}
"""Stored form of a picture under each orientation: TIFF 6.0, section 8."""


def stored(shown: ImageU8, orientation: int) -> ImageU8:
    return np.ascontiguousarray(STORED_FROM_SHOWN[orientation](shown))


def tag(orientation: int) -> list[tuple[int, str, int, int, bool]]:
    return [(274, "H", 1, orientation, True)]


def write(path: Path, shown: ImageU8, orientation: int, **options: Any) -> Path:
    arguments = {"photometric": "rgb", "tile": (128, 128), "metadata": None} | options
    tifffile.imwrite(path, stored(shown, orientation), extratags=tag(orientation), **arguments)
    return path


def everywhere(path: Path, folder: Path) -> dict[str, ImageU8]:
    """The whole picture as a region, out of its tiles, and as the thumbnail of its ingest."""
    folder.mkdir()
    inspection = inspect_slide(path=str(path), out_dir=str(folder))
    with TileSource(path) as source:
        level = source.levels[0]
        size = (level.width_px, level.height_px)
        plane: ImageU8 = np.zeros((level.height_px + 512, level.width_px + 512, 3), np.uint8)
        for x in range(0, level.width_px, level.tile_width_px):
            for y in range(0, level.height_px, level.tile_height_px):
                data = source.tile(0, x // level.tile_width_px, y // level.tile_height_px).data
                tile = np.asarray(Image.open(io.BytesIO(data)))
                plane[y : y + tile.shape[0], x : x + tile.shape[1]] = tile
        region = source.region((0, 0), size, size)
    thumbnail = np.asarray(Image.open(folder / str(inspection["thumbnail"])))
    return {
        "region": region,
        "tiles": plane[: size[1], : size[0]],
        "thumbnail": np.asarray(Image.fromarray(thumbnail).resize(size)),
    }


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("compression", [None, "lzw", "deflate", "jpeg"])
def test_the_image_is_upright_for_every_compression(
    tmp_path: Path, gradient: ImageU8, orientation: int, compression: str | None
) -> None:
    path = write(tmp_path / "turned.tif", gradient, orientation, compression=compression)
    for place, pixels in everywhere(path, tmp_path / "out").items():
        assert pixels.shape == gradient.shape, place
        assert np.abs(pixels.astype(int) - gradient).mean() < 4, place


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_regions_of_a_rotated_image_are_its_pixels(
    tmp_path: Path, gradient: ImageU8, orientation: int
) -> None:
    path = write(tmp_path / "turned.tif", gradient, orientation, compression="lzw")
    with open_slide(path) as slide:
        inside = slide.read_region((130, 70), (200, 90), (200, 90))
        across = slide.read_region((-20, -10), (60, 40), (60, 40))
    assert np.array_equal(inside, gradient[70:160, 130:330])
    assert np.array_equal(across[10:, 20:], gradient[:30, :40])
    assert across[:10].min() == across[:, :20].min() == 255


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("is_stated_once", [True, False])
def test_reduced_pages_are_rotated_like_the_first(
    tmp_path: Path, gradient: ImageU8, orientation: int, is_stated_once: bool
) -> None:
    path = tmp_path / "pyramid.tif"
    options: Any = {"photometric": "rgb", "tile": (128, 128), "metadata": None}
    with tifffile.TiffWriter(path) as tiff:
        tiff.write(stored(gradient, orientation), extratags=tag(orientation), **options)
        reduced = stored(np.ascontiguousarray(gradient[::2, ::2]), orientation)
        extra = [] if is_stated_once else tag(orientation)
        tiff.write(reduced, subfiletype=1, extratags=extra, **options)
    with open_slide(path) as slide:
        size = (gradient.shape[1] // 2, gradient.shape[0] // 2)
        assert [level.downsample for level in slide.stored] == [1.0, 2.0]
        half = slide.read_level(1, (0, 0), size)
    assert np.array_equal(half, gradient[::2, ::2][: size[1], : size[0]])


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("is_stated_once", [True, False])
def test_levels_in_sub_ifds_are_rotated_like_their_page(
    tmp_path: Path, gradient: ImageU8, orientation: int, is_stated_once: bool
) -> None:
    path = tmp_path / "turned.ome.tif"
    options: Any = {"photometric": "rgb", "tile": (128, 128), "compression": "lzw"}
    half = np.ascontiguousarray(gradient[::2, ::2])
    with tifffile.TiffWriter(path, ome=True) as tiff:
        tiff.write(stored(gradient, orientation), subifds=1, extratags=tag(orientation), **options)
        extra = [] if is_stated_once else tag(orientation)
        tiff.write(stored(half, orientation), subfiletype=1, extratags=extra, **options)
    with open_slide(path) as slide:
        size = (gradient.shape[1], gradient.shape[0])
        assert [level.downsample for level in slide.stored] == [1.0, 2.0]
        assert np.array_equal(slide.read_region((0, 0), size, size), gradient)
        shown = slide.read_level(1, (0, 0), (half.shape[1], half.shape[0]))
    assert np.array_equal(shown, half)
    tiles = everywhere(path, tmp_path / "out")["tiles"]
    assert np.abs(tiles.astype(int) - gradient).mean() < 4


def test_rotated_planar_colours_are_refused_by_name(tmp_path: Path, gradient: ImageU8) -> None:
    planes = np.ascontiguousarray(stored(gradient, 6).transpose(2, 0, 1))
    options: Any = {"photometric": "rgb", "tile": (128, 128), "planarconfig": "separate"}
    tifffile.imwrite(tmp_path / "a.tif", planes, extratags=tag(6), metadata=None, **options)
    with pytest.raises(UnsupportedFormatError, match="colours"):
        open_slide(tmp_path / "a.tif")


@pytest.mark.parametrize("is_tiled", [True, False])
@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_the_scale_is_rotated_with_the_image(
    tmp_path: Path, gradient: ImageU8, orientation: int, is_tiled: bool
) -> None:
    path = write(
        tmp_path / "a.tif",
        gradient,
        orientation,
        resolution=(20_000, 16_000),
        resolutionunit="CENTIMETER",
        **({} if is_tiled else {"tile": None}),
    )
    with open_slide(path) as slide:
        mpp = (slide.info.mpp_x, slide.info.mpp_y)
    assert mpp == pytest.approx((0.5, 0.625) if orientation == 3 else (0.625, 0.5))


def test_rotated_jpeg_tiles_are_not_passed_through(tmp_path: Path, gradient: ImageU8) -> None:
    path = write(tmp_path / "turned.tif", gradient, 3, compression="jpeg")
    tifffile.imwrite(
        tmp_path / "upright.tif", gradient, photometric="rgb", tile=(128, 128), compression="jpeg"
    )
    with TileSource(path) as turned, TileSource(tmp_path / "upright.tif") as plain:
        assert not turned.passes_through(0)
        assert plain.passes_through(0)


@pytest.mark.parametrize("orientation", [0, 9])
def test_an_undefined_orientation_is_ignored(
    tmp_path: Path, gradient: ImageU8, orientation: int
) -> None:
    tifffile.imwrite(
        tmp_path / "a.tif",
        gradient,
        photometric="rgb",
        tile=(128, 128),
        extratags=tag(orientation),
        metadata=None,
    )
    with open_slide(tmp_path / "a.tif") as slide:
        region = slide.read_region((0, 0), (300, 200), (300, 200))
    assert np.array_equal(region, gradient[:200, :300])


def test_a_de_identified_copy_shows_the_same_picture(tmp_path: Path, gradient: ImageU8) -> None:
    path = write(tmp_path / "a.tif", gradient, 8, compression="lzw", description="Jane Doe")
    assert deidentify(path=str(path), out_dir=str(tmp_path))["removed"]
    with open_slide(path) as before, open_slide(tmp_path / "clean") as after:
        size = (before.info.width_px, before.info.height_px)
        shown = before.read_region((0, 0), size, size)
        assert np.array_equal(shown, after.read_region((0, 0), size, size))
    assert np.array_equal(shown, gradient)

"""Tiles: stored bytes passed through show what OpenSlide shows; the rest is decoded."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path

import numpy as np
import openslide
import pytest
import tifffile
from PIL import Image, ImageCms

from ml.imaging.formats.tiff import read_directories
from ml.imaging.slides.pyramids import write_pyramid
from ml.imaging.slides.slide import open_slide
from ml.imaging.slides.tiles import TileOutsideError, TileSource
from ml.types import ImageU8
from tests.threads import at_once


def _open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _pixels(data: bytes) -> ImageU8:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def _by_openslide(path: Path, source: TileSource, level: int, col: int, row: int) -> ImageU8:
    grid = source.levels[level]
    with openslide.OpenSlide(str(path)) as slide:
        xy = (
            round(col * grid.tile_width_px * grid.downsample),
            round(row * grid.tile_height_px * grid.downsample),
        )
        size = (grid.tile_width_px, grid.tile_height_px)
        rgba = slide.read_region(xy, level, size)
    return np.asarray(rgba.convert("RGB"))


def _assert_as_openslide(path: Path, tolerance: int = 2) -> int:
    """Compare every passed-through tile inside the slide; return how many were compared."""
    compared = 0
    with TileSource(path) as source:
        for level, grid in enumerate(source.levels):
            if not source.passes_through(level):
                continue
            for row in range(grid.height_px // grid.tile_height_px):
                for col in range(grid.width_px // grid.tile_width_px):
                    tile = source.tile(level, col, row)
                    assert tile.passthrough
                    expected = _by_openslide(path, source, level, col, row).astype(int)
                    difference = np.abs(_pixels(tile.data).astype(int) - expected)
                    assert difference.max() <= tolerance
                    compared += 1
    return compared


@pytest.mark.parametrize("quality", [75, 90])
def test_tiles_of_written_pyramids_pass_through(
    tmp_path: Path, gradient: ImageU8, quality: int
) -> None:
    # below 90 libvips stores subsampled YCbCr, from 90 on RGB: both must show the same colours
    path = write_pyramid(gradient, tmp_path / "p.tif", tile_px=128, quality=quality)
    assert _assert_as_openslide(path) >= 20


def _jpeg_tiles(rgb: ImageU8, tile_px: int, *, keep_rgb: bool) -> list[bytes]:
    tiles = []
    for y in range(0, rgb.shape[0], tile_px):
        for x in range(0, rgb.shape[1], tile_px):
            out = io.BytesIO()
            tile = Image.fromarray(np.ascontiguousarray(rgb[y : y + tile_px, x : x + tile_px]))
            tile.save(out, "JPEG", quality=92, keep_rgb=keep_rgb)
            tiles.append(out.getvalue())
    return tiles


@pytest.mark.parametrize("byteorder", ["<", ">"])
@pytest.mark.parametrize("bigtiff", [False, True])
@pytest.mark.parametrize("photometric", ["rgb", "ycbcr"])
def test_both_byte_orders_and_bigtiff_pass_through(
    tmp_path: Path, gradient: ImageU8, byteorder: str, bigtiff: bool, photometric: str
) -> None:
    path = tmp_path / "t.tif"
    rgb = np.ascontiguousarray(gradient[:512, :640])
    with tifffile.TiffWriter(path, byteorder=byteorder, bigtiff=bigtiff) as writer:
        for scale in (1, 2):
            image = np.ascontiguousarray(rgb[::scale, ::scale])
            writer.write(
                iter(_jpeg_tiles(image, 64, keep_rgb=photometric == "rgb")),
                shape=image.shape, dtype=np.uint8, tile=(64, 64), photometric=photometric,
                compression="jpeg", compressionargs={"outcolorspace": photometric},
                subfiletype=scale - 1, resolution=(40_000, 40_000),
                resolutionunit="CENTIMETER",
            )  # fmt: skip
    with TileSource(path) as source, open_slide(path) as slide:
        assert [level.downsample for level in source.levels] == [1.0, 2.0]
        assert slide.info.mpp_x == pytest.approx(0.25)
        tile = source.tile(0, 1, 1)
        assert tile.passthrough
        expected = rgb[64:128, 64:128].astype(int)
        assert np.abs(_pixels(tile.data).astype(int) - expected).mean() < 6
        read = slide.read_level(0, (64, 64), (64, 64)).astype(int)
        assert np.abs(_pixels(tile.data).astype(int) - read).max() <= 6
        assert source.tile(1, 4, 3).passthrough


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cmu-1-small-region.svs", "her2st-c2.tif", "her2st-b-d2.tif"])
def test_real_slides_pass_through_as_openslide_shows_them(tessera_data: Path, name: str) -> None:
    assert _assert_as_openslide(tessera_data / "histology" / "slides" / name) > 80


def test_jpeg2000_tiles_are_decoded_and_keep_their_icc_profile(tessera_data: Path) -> None:
    path = tessera_data / "histology" / "slides" / "tcga-cr-7395.svs"
    with TileSource(path) as source:
        tile = source.tile(0, 5, 5)
        assert not tile.passthrough
        profile = Image.open(io.BytesIO(tile.data)).info["icc_profile"]
        assert profile == source.icc_profile
        expected = _by_openslide(path, source, 0, 5, 5).astype(int)
        assert np.abs(_pixels(tile.data).astype(int) - expected).mean() < 6


def _profile(padding: int = 0) -> bytes:
    made = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    made += bytes(padding)
    made[:4] = len(made).to_bytes(4, "big")
    return bytes(made)


@pytest.mark.parametrize("padding", [0, 150_000])
def test_an_icc_profile_of_any_length_is_copied(
    tmp_path: Path, gradient: ImageU8, padding: int
) -> None:
    profile = _profile(padding)
    Image.fromarray(gradient).save(tmp_path / "s.png", icc_profile=profile)
    path = write_pyramid(tmp_path / "s.png", tmp_path / "p.tif")
    with TileSource(path) as source:
        tile = source.tile(0, 0, 0)
    assert tile.passthrough
    assert Image.open(io.BytesIO(tile.data)).info["icc_profile"] == profile
    assert _pixels(tile.data).shape == (256, 256, 3)


def test_a_tile_is_the_stored_bytes_behind_the_tables(pyramid: Path) -> None:
    directory = read_directories(pyramid)[0]
    at = directory.columns + 2
    offset, count = int(directory.offsets[at]), int(directory.counts[at])
    stored = pyramid.read_bytes()[offset : offset + count]
    with TileSource(pyramid) as source:
        data = source.tile(0, 2, 1).data
    assert data.endswith(stored[2:])
    assert data[:2] == b"\xff\xd8"


def test_tiles_at_the_edge_have_the_full_tile_size(pyramid: Path) -> None:
    with TileSource(pyramid) as source:
        assert _pixels(source.tile(0, 5, 4).data).shape == (128, 128, 3)


def test_sparse_tiles_are_blank(tmp_path: Path) -> None:
    path = tmp_path / "sparse.tif"
    white = np.full((64, 64, 3), 200, np.uint8)
    encoded = io.BytesIO()
    Image.fromarray(white).save(encoded, "JPEG")
    tiles = [encoded.getvalue(), b"", b"", encoded.getvalue()]
    tifffile.imwrite(
        path, iter(tiles), shape=(128, 128, 3), dtype=np.uint8, tile=(64, 64),
        photometric="ycbcr", compression="jpeg",
    )  # fmt: skip
    with TileSource(path) as source:
        assert source.tile(0, 0, 0).passthrough
        blank = source.tile(0, 1, 0)
    assert not blank.passthrough
    assert _pixels(blank.data).min() >= 254


@pytest.mark.parametrize("compression", ["zlib", "lzw", None])
def test_lossless_tiles_are_decoded(
    tmp_path: Path, gradient: ImageU8, compression: str | None
) -> None:
    path = tmp_path / "t.tif"
    tifffile.imwrite(path, gradient, tile=(128, 128), compression=compression, photometric="rgb")
    with TileSource(path) as source:
        tile = source.tile(0, 1, 2)
    assert not tile.passthrough
    expected = gradient[256:384, 128:256].astype(int)
    assert np.abs(_pixels(tile.data).astype(int) - expected).mean() < 6


def test_missing_coarse_levels_are_computed(tmp_path: Path) -> None:
    rgb = np.zeros((1_500, 3_000, 3), np.uint8)
    rgb[:, :1_500] = (200, 40, 90)
    rgb[:, 1_500:] = (20, 180, 60)
    path = tmp_path / "flat.tif"
    tifffile.imwrite(path, rgb, tile=(256, 256), compression="zlib", photometric="rgb")
    with TileSource(path) as source:
        assert [(g.width_px, g.height_px, g.stored) for g in source.levels] == [
            (3_000, 1_500, True),
            (1_500, 750, False),
            (750, 375, False),
        ]
        coarse = _pixels(source.tile(2, 0, 0).data).astype(int)
        right = _pixels(source.tile(2, 2, 1).data).astype(int)
    assert np.abs(coarse - (200, 40, 90)).max() < 8
    assert np.abs(right[:100, :200] - (20, 180, 60)).max() < 8
    assert right[140:].min() > 240  # beyond the slide


def test_a_still_has_tiles(tmp_path: Path, gradient: ImageU8) -> None:
    Image.fromarray(gradient).save(tmp_path / "s.png")
    with TileSource(tmp_path / "s.png") as source:
        tile = source.tile(0, 1, 1)
    expected = gradient[256:512, 256:512].astype(int)
    assert np.abs(_pixels(tile.data).astype(int) - expected).mean() < 6


@pytest.mark.parametrize("where", [(9, 0, 0), (-1, 0, 0), (0, 6, 0), (0, 0, 5), (0, -1, 0)])
def test_tiles_outside_the_image_are_refused(pyramid: Path, where: tuple[int, int, int]) -> None:
    with TileSource(pyramid) as source, pytest.raises(TileOutsideError):
        source.tile(*where)


def test_the_label_and_macro_images_are_no_levels(tessera_data: Path) -> None:
    path = tessera_data / "histology" / "slides" / "cmu-1-small-region.svs"
    with TileSource(path) as source, openslide.OpenSlide(str(path)) as slide:
        assert {"label", "macro"} <= set(slide.associated_images)
        hidden = {image.size for image in slide.associated_images.values()}
        assert not hidden & {(g.width_px, g.height_px) for g in source.levels}


def test_many_threads_read_the_same_bytes(pyramid: Path) -> None:
    with TileSource(pyramid) as source:
        where = [(0, c, r) for c in range(6) for r in range(5)] + [(1, 0, 0), (2, 0, 0)]
        expected = [source.tile(*w).data for w in where]
        wrong: list[object] = []

        def read() -> None:
            for w, data in list(zip(where, expected, strict=True)) * 5:
                if source.tile(*w).data != data:
                    wrong.append(w)

        at_once(read, 8)
    assert wrong == []


def test_a_source_opened_before_a_fork_serves_both_processes(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rgb = rng.integers(0, 255, (1_400, 1_400, 3), dtype=np.uint8)
    path = tmp_path / "t.tif"
    tifffile.imwrite(path, rgb, tile=(128, 128), compression="zlib", photometric="rgb")
    with TileSource(path) as source:
        where = [(0, c, r) for c in range(10) for r in range(10)]
        expected = [source.tile(*w).data for w in where]
        pids = []
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                ok = all(source.tile(*w).data == d for w, d in zip(where, expected, strict=True))
                os._exit(0 if ok else 1)
            pids.append(pid)
        assert [source.tile(*w).data for w in where] == expected
        assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0, 0, 0]


def test_closing_twice_frees_descriptors_without_error(pyramid: Path) -> None:
    TileSource(pyramid).close()
    before = _open_descriptors()
    source = TileSource(pyramid)
    source.tile(0, 0, 0)
    source.close()
    source.close()
    assert _open_descriptors() == before


def test_a_tile_that_claims_more_bytes_than_its_samples_is_not_passed_through(
    pyramid: Path, tmp_path: Path
) -> None:
    """A file may claim megabytes for each small tile; they are not read into the web process."""
    with tifffile.TiffFile(pyramid) as tiff:
        tag = tiff.pages[0].tags["TileByteCounts"]
    data = bytearray(pyramid.read_bytes()) + bytes(4_000_000)
    struct.pack_into("<I", data, tag.valueoffset, 3_000_000)
    (tmp_path / "claims.tif").write_bytes(data)
    with TileSource(tmp_path / "claims.tif") as source:
        assert not source.passes_through(0)
        assert len(source.tile(0, 0, 0).data) < 100_000

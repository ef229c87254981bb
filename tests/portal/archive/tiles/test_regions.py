"""Rectangles of a canvas: tiles as they are stored, the rest read within bounds."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ml.imaging.slides.pyramids import write_pyramid
from ml.imaging.slides.tiles import TileSource
from portal.archive.models import Canvas, CanvasKind
from portal.archive.tiles import regions
from portal.archive.tiles.cache import SOURCES
from portal.archive.tiles.regions import Box, region_read, scale_factors
from portal.core.errors import InvalidInputError, UnavailableError

WIDTH, HEIGHT = 1100, 900


@pytest.fixture
def canvas(tmp_path: Path, settings: Any) -> Canvas:
    """A slide of five quarters of a tile, whose red is x and whose green is y."""
    settings.TESSERA_STORAGE = tmp_path
    xs, ys = np.meshgrid(np.linspace(0, 255, WIDTH), np.linspace(0, 255, HEIGHT))
    rgb = np.stack([xs, ys, np.full_like(xs, 90)], axis=2).astype(np.uint8)
    write_pyramid(rgb, tmp_path / "slide.tif")
    SOURCES.clear()
    with TileSource(tmp_path / "slide.tif") as source:
        levels = [
            {
                "width_px": level.width_px,
                "height_px": level.height_px,
                "downsample": level.downsample,
                "tile_width_px": level.tile_width_px,
                "tile_height_px": level.tile_height_px,
            }
            for level in source.levels
        ]
    return Canvas(
        kind=CanvasKind.SLIDE,
        width_px=WIDTH,
        height_px=HEIGHT,
        levels=levels,
        pixels_path="slide.tif",
        content_hash="c" * 64,
    )


def test_every_tile_that_is_named_is_given_at_its_exact_size(canvas: Canvas) -> None:
    ((tile_width, tile_height), factors) = next(iter(scale_factors(canvas).items()))
    assert factors[:2] == [1, 2]
    for factor in factors:
        for left in range(0, WIDTH, tile_width * factor):
            for top in range(0, HEIGHT, tile_height * factor):
                box = Box(
                    left,
                    top,
                    min(tile_width * factor, WIDTH - left),
                    min(tile_height * factor, HEIGHT - top),
                )
                out = (-(-box.width // factor), -(-box.height // factor))
                pixels = region_read(canvas, box, out).pixels().astype(float)
                assert pixels.shape == (out[1], out[0], 3)
                middle = pixels[out[1] // 2, out[0] // 2]
                at = (left + box.width / 2, top + box.height / 2)
                assert abs(middle[0] - at[0] / WIDTH * 255) < 6
                assert abs(middle[1] - at[1] / HEIGHT * 255) < 6


def test_an_aligned_tile_is_the_stored_one(canvas: Canvas, tmp_path: Path) -> None:
    level = canvas.levels[0]
    side = level["tile_width_px"]
    region = region_read(canvas, Box(side, 0, side, side), (side, side))
    with TileSource(tmp_path / "slide.tif") as source:
        assert region.jpeg == source.tile(0, 1, 0).data


def test_an_unaligned_region_is_read_at_its_size(canvas: Canvas) -> None:
    region = region_read(canvas, Box(100, 200, 333, 200), (111, 50))
    assert region.jpeg is None
    assert region.pixels().shape == (50, 111, 3)
    assert abs(float(region.pixels()[25, 55, 0]) - 266.5 / WIDTH * 255) < 4


def test_too_many_pixels_are_not_read(canvas: Canvas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "MAX_READ_PIXELS", 10_000)
    with pytest.raises(InvalidInputError) as refused:
        region_read(canvas, Box(0, 0, 500, 500), (499, 499))
    assert refused.value.code == "too-costly"
    assert region_read(canvas, Box(0, 0, 50, 50), (49, 49)).pixels().shape == (49, 49, 3)


def test_a_busy_reader_answers_retry_later(canvas: Canvas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "PATIENCE_S", 0.01)
    taken = [regions._TURNS.acquire(timeout=1) for _ in range(regions.AT_ONCE)]
    try:
        with pytest.raises(UnavailableError) as refused:
            region_read(canvas, Box(0, 0, 50, 50), (49, 49))
    finally:
        for _ in taken:
            regions._TURNS.release()
    assert refused.value.details["retry_after_s"] > 0


def test_a_missing_file_is_unavailable(canvas: Canvas, tmp_path: Path) -> None:
    (tmp_path / "slide.tif").unlink()
    with pytest.raises(UnavailableError):
        region_read(canvas, Box(0, 0, 50, 50), (49, 49))


def test_a_level_that_drifts_is_not_named(canvas: Canvas) -> None:
    canvas.levels = [canvas.levels[0], canvas.levels[1] | {"downsample": 2.4}]
    assert list(scale_factors(canvas).values()) == [[1]]


def test_tiles_keep_the_profile_of_colours(canvas: Canvas) -> None:
    side = canvas.levels[0]["tile_width_px"]
    region = region_read(canvas, Box(0, 0, side, side), (side, side))
    assert region.jpeg is not None
    with Image.open(io.BytesIO(region.jpeg)) as image:
        assert image.info.get("icc_profile") == region.icc_profile

"""The tile service below fast path and REST."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.archive.models import Slide
from portal.archive.storage import files as archive_storage
from portal.archive.tiles.cache import SOURCES, SourceCache
from portal.archive.tiles.reading import plane_of, tile_etag, tile_read
from portal.core.errors import NotFoundError, UnavailableError

pytestmark = pytest.mark.django_db


def test_z_counts_from_the_coarsest(slide: Slide) -> None:
    assert slide.canvas is not None
    plane = plane_of(slide.canvas)
    assert plane.grid[0] == (1, 1)
    assert plane.grid[-1] == (5, 4)
    with pytest.raises(NotFoundError, match="0/1/0"):
        tile_read(plane, 0, 1, 0)


def test_a_stored_tile_is_not_cached_and_a_decoded_one_is(slide: Slide, storage: Path) -> None:
    assert slide.canvas is not None
    plane = plane_of(slide.canvas)
    stored = [z for z, level in enumerate(reversed(slide.canvas.levels)) if level["stored"]]
    for z in stored:
        tile_read(plane, z, 0, 0)
    assert not (storage / "cache").exists()


def test_a_decoded_tile_is_read_from_the_cache_the_second_time(slide: Slide, storage: Path) -> None:
    canvas = slide.canvas
    assert canvas is not None
    plane = plane_of(canvas)
    level = SOURCES.get(plane.path)
    passes = level.passes_through
    level.passes_through = lambda _: False  # type: ignore[method-assign]
    try:
        first = tile_read(plane, 0, 0, 0)
        stored = plane.cache / "0" / "0_0.jpg"
        assert stored.read_bytes() == first
        stored.write_bytes(b"from the cache")
        assert tile_read(plane, 0, 0, 0) == b"from the cache"
    finally:
        level.passes_through = passes  # type: ignore[method-assign]


def test_etags_differ_between_tiles_and_contents(slide: Slide, still: Slide) -> None:
    assert slide.canvas is not None
    assert still.canvas is not None
    first, second = plane_of(slide.canvas), plane_of(still.canvas)
    tags = {tile_etag(first, 0, 0, 0), tile_etag(first, 1, 0, 0), tile_etag(second, 0, 0, 0)}
    assert len(tags) == 3


def test_a_missing_file_is_reported(slide: Slide) -> None:
    assert slide.canvas is not None
    archive_storage.asset_path(slide.lab_id, slide.asset.sha256).unlink()
    with pytest.raises(UnavailableError):
        tile_read(plane_of(slide.canvas), 0, 0, 0)


def test_few_files_stay_open(slide: Slide, still: Slide) -> None:
    assert slide.canvas is not None
    assert still.canvas is not None
    sources = SourceCache(1)
    first = sources.get(slide.canvas.pixels_path)
    assert sources.get(slide.canvas.pixels_path) is first
    sources.get(still.canvas.pixels_path)
    assert sources.get(slide.canvas.pixels_path) is not first
    assert first.tile(0, 0, 0).data  # whoever holds it still reads

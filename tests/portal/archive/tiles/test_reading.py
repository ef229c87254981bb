"""The tile service below fast path and REST."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.archive import storage as places
from portal.archive.models import Slide
from portal.archive.tiles.cache import SOURCES, ByteCache, SourceCache
from portal.archive.tiles.reading import plane_of, tile_etag, tile_read
from portal.core.errors import NotFoundError, UnavailableError

pytestmark = pytest.mark.django_db


def test_z_counts_from_the_coarsest(slide: Slide) -> None:
    assert slide.canvas is not None
    plane = plane_of(slide.canvas)
    assert plane.grid[0] == (1, 1)
    assert plane.grid[-1] == (5, 4)
    with pytest.raises(NotFoundError, match="no tile 0/1/0"):
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
        kept = plane.cache / "0" / "0_0.jpg"
        assert kept.read_bytes() == first
        kept.write_bytes(b"from the cache")
        assert tile_read(plane, 0, 0, 0) == b"from the cache"
    finally:
        level.passes_through = passes  # type: ignore[method-assign]


def test_etags_differ_between_tiles_and_contents(slide: Slide, still: Slide) -> None:
    assert slide.canvas is not None
    assert still.canvas is not None
    first, second = plane_of(slide.canvas), plane_of(still.canvas)
    tags = {tile_etag(first, 0, 0, 0), tile_etag(first, 1, 0, 0), tile_etag(second, 0, 0, 0)}
    assert len(tags) == 3


def test_a_file_that_is_gone_is_said(slide: Slide) -> None:
    assert slide.canvas is not None
    places.asset_path(slide.lab_id, slide.asset.sha256).unlink()
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


def test_the_memory_of_tiles_is_bounded() -> None:
    cache: ByteCache[str] = ByteCache(100)
    for name in "abc":
        cache.put(name, name, 40)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (None, "b", "c")
    cache.put("b", "B", 90)
    assert (cache.get("b"), cache.get("c")) == ("B", None)
    cache.put("large", "x", 500)
    assert cache.get("large") is None

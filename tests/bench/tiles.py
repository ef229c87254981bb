"""Tiles in process: pass-through against the raw read of the same bytes and against DeepZoom."""

from __future__ import annotations

import io
import os
import random
from pathlib import Path

import numpy as np
import openslide
import tifffile
from openslide.deepzoom import DeepZoomGenerator

from ml.imaging.slides.jpeg import encode_jpeg
from ml.imaging.slides.slide import open_slide
from ml.imaging.slides.tiles import TileSource
from tests.bench.measure import Row, Section, each, median_ms, p95_ms

TILES = 600
DECODED_PX = 256
DECODED_TILES = 200


def tiles_in_process(path: Path, *, real: Path | None) -> Section:
    """Level-0 tiles of the sample slide, in random order, the file in the page cache."""
    section = Section(
        "Tiles in process",
        f"{TILES} level-0 tiles in random order, page cache warm. Pass-through sends the stored "
        "JPEG bytes with tables and ICC profile merged.",
    )
    for name, file in (("sample slide", path), ("CMU-1 (SVS)", real)):
        if file is not None:
            _measure(section, name, file)
    return section


def _measure(section: Section, name: str, path: Path) -> None:
    with tifffile.TiffFile(path) as tiff:
        page = tiff.pages[0]
        spans = list(zip(page.dataoffsets, page.databytecounts, strict=True))
        across = -(-page.imagewidth // page.tilewidth)
    chosen = random.Random(5).choices(range(len(spans)), k=TILES)
    handle = os.open(path, os.O_RDONLY)
    source = TileSource(path)
    zoom = DeepZoomGenerator(openslide.OpenSlide(str(path)), tile_size=DECODED_PX, overlap=0)
    columns, rows = zoom.level_tiles[-1]

    def raw(number: int) -> None:
        offset, count = spans[number]
        os.pread(handle, count, offset)

    def opened(number: int) -> None:
        offset, count = spans[number]
        with path.open("rb", buffering=0) as file:
            file.seek(offset)
            file.read(count)

    def passed(number: int) -> None:
        source.tile(0, number % across, number // across)

    def deep(number: int) -> None:
        picture = zoom.get_tile(zoom.level_count - 1, (number % columns, number // columns % rows))
        picture.save(io.BytesIO(), "JPEG", quality=85)

    raw_s, passed_s = each(raw, chosen), each(passed, chosen)
    raw_s, passed_s = (
        np.minimum(raw_s, each(raw, chosen)),
        np.minimum(passed_s, each(passed, chosen)),
    )
    opened_s = each(opened, chosen)
    deep_s = each(deep, chosen[:200])
    os.close(handle)
    section.rows += [
        Row(
            f"{name}: pass-through",
            median_ms(passed_s),
            "ms a tile",
            "`os.pread` of the same bytes, file open",
            median_ms(raw_s) / median_ms(passed_s),
            "at most 1.5x the raw read (ratio of at least 0.67)",
        ),
        Row(
            f"{name}: pass-through",
            median_ms(passed_s),
            "ms a tile",
            "open, seek and read of the same bytes",
            median_ms(opened_s) / median_ms(passed_s),
        ),
        Row(
            f"{name}: pass-through",
            median_ms(passed_s),
            "ms a tile",
            "DeepZoomGenerator + JPEG",
            median_ms(deep_s) / median_ms(passed_s),
        ),
        _decoded(name, path),
    ]


def _decoded(name: str, path: Path) -> Row:
    """The same 256 px tiles both ways: from the file to JPEG bytes, decoding and encoding."""
    zoom = DeepZoomGenerator(openslide.OpenSlide(str(path)), tile_size=DECODED_PX, overlap=0)
    columns, rows = (count - 1 for count in zoom.level_tiles[-1])  # whole tiles only
    cells = [divmod(number, columns) for number in range(columns * rows)]
    chosen = random.Random(6).choices(cells, k=DECODED_TILES)

    def deep(cell: tuple[int, int]) -> None:
        row, column = cell
        picture = zoom.get_tile(zoom.level_count - 1, (column, row))
        picture.save(io.BytesIO(), "JPEG", quality=85)

    with open_slide(path) as slide:

        def ours(cell: tuple[int, int]) -> None:
            row, column = cell
            size = (DECODED_PX, DECODED_PX)
            corner = (column * DECODED_PX, row * DECODED_PX)
            encode_jpeg(slide.read_region(corner, size, size))

        each(ours, chosen[:20])
        deep_s, seconds = each(deep, chosen), each(ours, chosen)
    return Row(
        f"{name}: decoded {DECODED_PX} px tile, p95 (median {median_ms(seconds):.1f} ms)",
        p95_ms(seconds),
        "ms",
        "DeepZoomGenerator + JPEG, p95",
        p95_ms(deep_s) / p95_ms(seconds),
        "p95 under 10 ms",
    )

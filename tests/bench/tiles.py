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

from ml.imaging.slides import open_slide
from ml.imaging.tiles import TileSource
from tests.bench.measure import Row, Section, each, median_ms, p95_ms

TILES = 600
DECODED_PX = 256


def tiles_in_process(path: Path, *, real: Path | None) -> Section:
    """Level-0 tiles of the sample slide, in random order, the file in the page cache."""
    section = Section(
        "Tiles in process",
        f"{TILES} level-0 tiles in random order, page cache warm. Pass-through sends the stored "
        "JPEG bytes with tables and ICC profile merged; the raw read is `os.pread` of them.",
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
    deep_s = each(deep, chosen[:200])
    os.close(handle)
    section.rows += [
        Row(
            f"{name}: pass-through",
            median_ms(passed_s),
            "ms a tile",
            "raw file read",
            median_ms(raw_s) / median_ms(passed_s),
            "at most 1.5x the raw read (ratio of at least 0.67)",
        ),
        Row(
            f"{name}: pass-through",
            median_ms(passed_s),
            "ms a tile",
            "DeepZoomGenerator + JPEG",
            median_ms(deep_s) / median_ms(passed_s),
        ),
        _decoded(name, path, deep_s),
    ]


def _decoded(name: str, path: Path, deep_s: np.ndarray) -> Row:
    random_place = random.Random(6)
    with open_slide(path) as slide:
        width, height = slide.info.width_px, slide.info.height_px
        places = [
            (
                random_place.randrange(width - DECODED_PX),
                random_place.randrange(height - DECODED_PX),
            )
            for _ in range(200)
        ]

        def decode(xy_l0: tuple[int, int]) -> None:
            slide.read_scaled(xy_l0=xy_l0, size_l0=(DECODED_PX, DECODED_PX), downsample=1.0)

        seconds = each(decode, places)
    return Row(
        f"{name}: decoded {DECODED_PX} px region, p95",
        p95_ms(seconds),
        "ms",
        "DeepZoomGenerator + JPEG, p95",
        p95_ms(deep_s) / p95_ms(seconds),
        "p95 under 10 ms",
    )

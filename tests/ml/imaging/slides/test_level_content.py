"""A level shows what level 0 shows; a label never does, however a file hides it."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import tifffile

from ml.imaging.ingest import inspect_slide
from ml.imaging.slides.level_content import same_content
from ml.imaging.slides.pyramids import write_pyramid
from ml.imaging.slides.slide import open_slide
from ml.imaging.slides.tiles import TileSource
from ml.types import ImageU8
from tests.ml.imaging.labels import (
    HIDDEN,
    LEVELS,
    TILES,
    halved,
    label,
    tissue,
    write_with_label,
)


def _sizes(path: Path) -> list[tuple[int, int]]:
    with open_slide(path) as slide:
        return [(level.width_px, level.height_px) for level in slide.stored]


def _alike(a: ImageU8, b: ImageU8) -> bool:
    def of(image: ImageU8):
        return lambda x, y, width, height: image[y : y + height, x : x + width]

    return same_content(of(a), (a.shape[1], a.shape[0]), of(b), (b.shape[1], b.shape[0]))


@pytest.mark.parametrize("how", HIDDEN)
@pytest.mark.parametrize(("byteorder", "bigtiff"), [("<", False), (">", False), ("<", True)])
def test_a_label_is_no_level(tmp_path: Path, how: str, byteorder: str, bigtiff: bool) -> None:
    path = write_with_label(tmp_path / "a.tif", how, byteorder=byteorder, bigtiff=bigtiff)
    assert _sizes(path) == LEVELS
    with open_slide(path) as slide:
        seen = slide.thumbnail(384).astype(int)
    expected = halved(tissue(), 2).astype(int)
    if "grey_slide" in how:
        expected = np.repeat(expected[..., :1], 3, axis=2)
    assert np.abs(seen - expected).mean() < 3


def test_levels_of_every_writer_are_accepted(tmp_path: Path) -> None:
    for name, shrink in (
        ("means", halved),
        ("every second pixel", lambda image, times: image[:: 1 << times, :: 1 << times].copy()),
        ("blurred", lambda image, times: cv2.GaussianBlur(halved(image, times), (3, 3), 0)),
        ("brighter", lambda image, times: np.minimum(halved(image, times) + 5, 255)),
    ):
        path = tmp_path / f"{name}.tif"
        with tifffile.TiffWriter(path) as tiff:
            for times in range(3):
                tiff.write(shrink(tissue(), times) if times else tissue(), **TILES)
        assert len(_sizes(path)) == 3, name
    made = write_pyramid(tissue()[:1_001, :1_333], tmp_path / "made.tif", tile_px=64)
    assert len(_sizes(made)) == len(tifffile.TiffFile(made).pages) > 4


def test_a_level_that_is_blank_where_the_slide_is_not_is_no_level(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as tiff:
        tiff.write(tissue(), **TILES)
        tiff.write(np.full((256, 384, 3), 255, np.uint8), subfiletype=1, **TILES)
    assert _sizes(path) == LEVELS[:1]


def test_a_level_with_a_stamped_name_is_no_level() -> None:
    blank = np.full((1_024, 1_536, 3), 240, np.uint8)
    small = halved(blank)
    assert _alike(small, blank)
    cv2.putText(small, "Doe", (700, 500), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (60, 60, 60), 1)
    assert not _alike(small, blank)


def test_a_level_is_compared_by_content_and_not_only_by_colour() -> None:
    assert _alike(halved(tissue(), 2), tissue())
    assert not _alike(halved(tissue(), 2)[::-1], tissue())
    assert not _alike(label(384, 256), tissue())
    assert not _alike(halved(tissue(), 2), np.full((1_024, 1_536, 3), 128, np.uint8))


def test_reported_levels_equal_those_of_the_tiles(tmp_path: Path) -> None:
    path = write_with_label(tmp_path / "a.tif", "of_the_same_shape")
    (tmp_path / "out").mkdir()
    inspection = inspect_slide(path=str(path), out_dir=str(tmp_path / "out"))
    sizes = [
        (level["width_px"], level["height_px"]) for level in inspection["levels"] if level["stored"]
    ]
    assert sizes == LEVELS
    with TileSource(path) as tiles:
        assert [
            (level.width_px, level.height_px) for level in tiles.levels if level.stored
        ] == LEVELS

"""The image of a TIFF that is shown: the largest, at its own scale, with its own levels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from ml.imaging.formats.sniff import sniff
from ml.imaging.formats.tiff_layout import read_layout
from ml.imaging.ingest import inspect_slide
from ml.imaging.slides.slide import open_slide
from ml.imaging.slides.tiles import TileSource
from ml.types import ImageU8
from tests.ml.imaging.labels import LEVELS, SIZE, TILES, halved, label, tissue

_JPEG: dict[str, Any] = {"tile": (128, 128), "photometric": "ycbcr", "compression": "jpeg"} | {
    "subsampling": (2, 2)
}


def _inspect(path: Path) -> dict[str, Any]:
    out = path.with_suffix(".out")
    out.mkdir()
    return inspect_slide(path=str(path), out_dir=str(out))


def _ome(path: Path, images: list[tuple[str, list[ImageU8], float]], **more: Any) -> Path:
    """Images by name, levels (the coarser in SubIFDs) and microns per pixel, with tags of 1 um."""
    tags = {"resolution": (10_000, 10_000), "resolutionunit": "CENTIMETER"} | more
    with tifffile.TiffWriter(path, ome=True) as tiff:
        for name, levels, um in images:
            metadata = {"axes": "YXS", "Name": name, "PhysicalSizeX": um, "PhysicalSizeY": um}
            tiff.write(levels[0], subifds=len(levels) - 1, metadata=metadata, **_JPEG, **tags)
            for level in levels[1:]:
                tiff.write(level, subfiletype=1, **_JPEG)
    return path


def _pyramid() -> list[ImageU8]:
    return [tissue(), halved(tissue()), halved(tissue(), 2)]


@pytest.mark.parametrize("name", ["macro", "Image0"])
def test_the_scan_and_not_the_macro_is_the_slide(tmp_path: Path, name: str) -> None:
    macro = [label(600, 200), halved(label(600, 200))]
    path = _ome(tmp_path / "a.tif", [(name, macro, 16.4), ("scan", _pyramid(), 0.5)])
    inspection = _inspect(path)
    assert (inspection["width_px"], inspection["height_px"], inspection["mpp_x"]) == (*SIZE, 0.5)
    assert [(level["width_px"], level["height_px"]) for level in inspection["levels"]][:3] == LEVELS


@pytest.mark.parametrize("is_tiled", [True, False])
def test_a_thumbnail_before_the_image_is_not_the_image(tmp_path: Path, is_tiled: bool) -> None:
    options: dict[str, Any] = TILES if is_tiled else {"photometric": "rgb", "metadata": None}
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as tiff:
        tiff.write(halved(tissue(), 3), photometric="rgb", metadata=None)
        tiff.write(tissue(), resolution=(20_000, 20_000), resolutionunit=3, **options)
    assert sniff(path) == ("slide" if is_tiled else "still")
    inspection = _inspect(path)
    assert (inspection["width_px"], inspection["height_px"], inspection["mpp_x"]) == (*SIZE, 0.5)


def test_an_image_in_a_sub_ifd_of_its_preview_is_the_image(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as tiff:
        tiff.write(halved(tissue(), 3), subifds=1, subfiletype=1, photometric="rgb", metadata=None)
        tiff.write(tissue(), photometric="rgb", metadata=None)
    assert (_inspect(path)["width_px"], _inspect_again(path)) == (SIZE[0], SIZE)


def _inspect_again(path: Path) -> tuple[int, int]:
    with open_slide(path) as slide:
        assert np.array_equal(slide.read_level(0, (0, 0), SIZE), tissue())
        return slide.info.width_px, slide.info.height_px


@pytest.mark.parametrize("is_tiled", [True, False])
def test_a_stack_is_shown_by_its_first_page_with_the_number_of_omitted_pages(
    tmp_path: Path, is_tiled: bool
) -> None:
    options: dict[str, Any] = TILES if is_tiled else {"photometric": "rgb", "metadata": None}
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as tiff:
        for shift in range(3):
            tiff.write(np.roll(tissue(), shift, axis=1), **options)
    inspection = _inspect(path)
    assert (inspection["width_px"], inspection["height_px"]) == SIZE
    (warning,) = inspection["warnings"]
    assert "3 pages" in warning
    assert "2 are left out" in warning


def test_levels_in_sub_ifds_pass_through_as_levels_in_pages_do(tmp_path: Path) -> None:
    inner = _ome(tmp_path / "sub.tif", [("scan", _pyramid(), 0.5)])
    with tifffile.TiffWriter(tmp_path / "pages.tif") as tiff:
        for times, level in enumerate(_pyramid()):
            tiff.write(level, subfiletype=int(times > 0), metadata=None, **_JPEG)
    with TileSource(inner) as a, TileSource(tmp_path / "pages.tif") as b:
        assert [item.width_px for item in a.levels] == [item.width_px for item in b.levels]
        for level in range(3):
            assert a.passes_through(level)
            assert a.tile(level, 1, 1) == b.tile(level, 1, 1)


def test_a_level_far_smaller_than_its_tile_is_read(tmp_path: Path) -> None:
    options = {"tile": (512, 512), "photometric": "rgb", "compression": "jpeg"}
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as tiff:
        for times in range(5):
            level = halved(tissue(), times) if times else tissue()
            tiff.write(level, subfiletype=int(times > 0), metadata=None, **options)
    with open_slide(path) as slide:
        assert slide.stored[-1].width_px == 96
        seen = slide.read_level(4, (0, 0), (96, 64))
    luma = np.array([0.299, 0.587, 0.114])  # JPEG halves the colours
    assert float(np.abs(seen @ luma - halved(tissue(), 4) @ luma).mean()) < 4


@pytest.mark.parametrize(
    ("um", "tags", "expected"),
    [
        (0.5, {}, (0.5, "1 in its TIFF tags")),
        (0.5, {"resolution": (20_000, 20_000)}, (0.5, "")),
        (5_000.0, {}, (1.0, "")),  # implausible: the tags are believed
    ],
)
def test_ome_xml_states_the_scale_and_a_contradiction_is_reported(
    tmp_path: Path, um: float, tags: dict[str, Any], expected: tuple[float, str]
) -> None:
    inspection = _inspect(_ome(tmp_path / "a.tif", [("scan", _pyramid(), um)], **tags))
    assert inspection["mpp_x"] == pytest.approx(expected[0])
    assert bool(inspection["warnings"]) == bool(expected[1])
    assert all(expected[1] in warning for warning in inspection["warnings"])


def test_planes_and_other_images_are_distinguished(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as tiff:
        for image in (tissue(), tissue(), halved(tissue()), label(300, 300)):
            tiff.write(image, **TILES)
    layout = read_layout(path)
    assert [item.page for item in layout.levels] == [0, 2]
    assert [item.page for item in layout.planes] == [1]
    assert [(item.page, name) for item, name in layout.named_images] == [(3, "")]

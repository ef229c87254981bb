"""Regions at any scale, against hand-worked values and a slow independent version."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ml.errors import CorruptFileError, EmptyRegionError, ShapeError, UnsupportedFormatError
from ml.imaging.slides import slide as module
from ml.imaging.slides.metadata import allowed_properties, mpp_from_resolution, plausible_mpp
from ml.imaging.slides.pyramids import write_pyramid
from ml.imaging.slides.slide import open_slide
from ml.types import ImageU8
from tests.ml.imaging.deidentification.support import write_svs


@pytest.fixture
def still(tmp_path: Path, gradient: ImageU8) -> Path:
    """``gradient``, lossless."""
    Image.fromarray(gradient).save(tmp_path / "s.png")
    return tmp_path / "s.png"


def test_a_region_at_full_size_equals_the_pixels(still: Path, gradient: ImageU8) -> None:
    with open_slide(still) as slide:
        region = slide.read_region((100, 50), (300, 200), (300, 200))
    assert np.array_equal(region, gradient[50:250, 100:400])


def test_pixels_outside_are_white(still: Path, gradient: ImageU8) -> None:
    with open_slide(still) as slide:
        region = slide.read_region((-20, -10), (60, 40), (60, 40))
        beyond = slide.read_region((5_000, 5_000), (60, 40), (30, 20))
    assert np.array_equal(region[10:, 20:], gradient[:30, :40])
    assert region[:10].min() == region[:, :20].min() == 255
    assert beyond.min() == 255


def test_a_property_of_a_damaged_name_is_left_out(tmp_path: Path) -> None:
    path = write_svs(tmp_path / "a.svs")
    path.write_bytes(path.read_bytes().replace(b"|Title = x", b"|T\xfftle = x"))
    with open_slide(path) as slide:
        assert slide.info.mpp_x == 0.5


def test_halving_equals_a_box_filter(still: Path, gradient: ImageU8) -> None:
    with open_slide(still) as slide:
        region = slide.read_region((0, 0), (640, 512), (320, 256)).astype(float)
    boxed = gradient[:512, :640].reshape(256, 2, 320, 2, 3).mean(axis=(1, 3))
    assert np.abs(region - boxed).mean() < 1.5


def test_scaling_preserves_positions(still: Path) -> None:
    # red is linear in x: a column at output c covers source (c + .5) * scale
    with open_slide(still) as slide:
        region = slide.read_region((100, 100), (350, 350), (100, 100)).astype(float)
    expected = (100 + (np.arange(100) + 0.5) * 3.5 - 0.5) * 255 / 699
    assert np.abs(region[..., 0].mean(axis=0) - expected).max() < 1.5


def test_regions_can_start_at_half_a_pixel(still: Path) -> None:
    with open_slide(still) as slide:
        here = slide.read_region((200, 200), (64, 64), (64, 64)).astype(float)
        next_px = slide.read_region((201, 200), (64, 64), (64, 64)).astype(float)
        between = slide.read_region((200.5, 200), (64, 64), (64, 64)).astype(float)
    assert np.abs(between - (here + next_px) / 2).max() <= 1


def test_blocks_join_without_a_seam(still: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_slide(still) as slide:
        region = slide.read_region((3, 5), (610, 510), (203, 170))
        monkeypatch.setattr(module, "BLOCK_PIXELS", 20_000)
        joined = slide.read_region((3, 5), (610, 510), (203, 170))
    assert np.abs(region.astype(int) - joined).max() <= 1


def test_a_plain_slide_has_a_plain_thumbnail(tmp_path: Path) -> None:
    grey = np.full((900, 1_300, 3), 90, np.uint8)
    with open_slide(write_pyramid(grey, tmp_path / "p.tif")) as slide:
        thumbnail = slide.thumbnail(200)
    assert thumbnail.shape == (138, 200, 3)
    assert np.abs(thumbnail.astype(int) - 90).max() <= 2  # no white creeps in at the edges


def test_a_thumbnail_is_never_enlarged(still: Path) -> None:
    with open_slide(still) as slide:
        assert slide.thumbnail(5_000).shape == (600, 700, 3)


def test_regions_are_read_at_a_downsample(pyramid: Path) -> None:
    with open_slide(pyramid) as slide:
        assert slide.info.mpp_x == pytest.approx(0.25)
        assert slide.read_scaled((0, 0), (400, 200), 2.0).shape == (100, 200, 3)


@pytest.mark.parametrize("size", [(0, 10), (-5, 5), (float("nan"), 5), (float("inf"), 5)])
def test_regions_without_area_are_refused(pyramid: Path, size: tuple[float, float]) -> None:
    with open_slide(pyramid) as slide, pytest.raises(EmptyRegionError, match="positive size"):
        slide.read_region((0, 0), size, (10, 10))


def test_an_unlimited_output_is_refused(pyramid: Path) -> None:
    with open_slide(pyramid) as slide, pytest.raises(ShapeError, match="out_px"):
        slide.read_region((0, 0), (10, 10), (100_000, 100_000))


def test_a_video_is_no_slide(tmp_path: Path) -> None:
    (tmp_path / "v").write_bytes(b"\0\0\0\x18ftypisom" + bytes(100))
    with pytest.raises(UnsupportedFormatError, match="video"):
        open_slide(tmp_path / "v")


def test_a_damaged_tile_does_not_spoil_the_others(pyramid: Path) -> None:
    from ml.imaging.formats.tiff import read_directories

    directory = read_directories(pyramid)[0]
    data = bytearray(pyramid.read_bytes())
    start, count = int(directory.offsets[-1]), int(directory.counts[-1])
    data[start : start + count] = bytes(count)
    pyramid.write_bytes(data)
    with open_slide(pyramid) as slide:
        for _ in range(2):
            with pytest.raises(CorruptFileError, match="decoded"):
                slide.read_level(0, (640, 512), (128, 128))
            assert slide.read_level(0, (0, 0), (128, 128)).shape == (128, 128, 3)


def test_a_still_opened_before_a_fork_is_read_after_it(still: Path, gradient: ImageU8) -> None:
    with open_slide(still) as slide:
        pid = os.fork()
        if pid == 0:
            same = np.array_equal(slide.read_level(0, (0, 0), (700, 600)), gradient)
            os._exit(0 if same else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_only_allowed_numeric_properties_are_kept() -> None:
    properties = {
        "openslide.mpp-x": "0.25",
        "openslide.objective-power": "40",
        "aperio.AppMag": "Doe, Jane",
        "aperio.Date": "12/29/09",
        "aperio.Title": "Doe",
        "openslide.comment": "Doe",
        "tiff.ImageDescription": "Doe",
    }
    assert allowed_properties(properties) == {
        "openslide.mpp-x": "0.25",
        "openslide.objective-power": "40",
    }


@pytest.mark.parametrize(
    ("x", "y", "unit", "expected"),
    [
        (40_000, 40_000, 3, (0.25, 0.25)),
        (50_800, 50_800, 2, (0.5, 0.5)),
        (72, 72, 2, (None, None)),
        (300, 300, 2, (None, None)),
        (1, 1, 1, (None, None)),
        (40_000, 20_000, 3, (None, None)),
        (None, None, 3, (None, None)),
    ],
)
def test_a_plausible_resolution_is_used(
    x: float | None, y: float | None, unit: int, expected: tuple[float | None, float | None]
) -> None:
    assert mpp_from_resolution(x, y, unit) == expected


def test_implausible_microns_per_pixel_are_unknown() -> None:
    assert plausible_mpp(0.5, 0.51) == (0.5, 0.51)
    assert plausible_mpp(0.0, 0.5) == plausible_mpp(352.7, 352.7) == (None, None)


def test_a_slide_that_openslide_cannot_open_raises_a_corrupt_file_error(tmp_path: Path) -> None:
    uid = b"1.2.840.10008.5.1.4.1.1.77.1.6"
    (tmp_path / "x").write_bytes(bytes(128) + b"DICM" + uid + bytes(400))
    with pytest.raises(CorruptFileError):
        open_slide(tmp_path / "x")

"""Conversion of files from users, and refusal of bad ones."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from ml.errors import (
    BadInputError,
    CorruptFileError,
    NoVideoStreamError,
    TooLargeError,
    UnsupportedFormatError,
)
from ml.imaging.ingest import inspect_slide, inspect_video
from ml.imaging.sandbox.parent import run_limited
from ml.imaging.sandbox.policy import Limits
from ml.imaging.slides.pyramids import write_pyramid
from ml.imaging.slides.slide import open_slide
from ml.imaging.slides.tiles import TileSource
from ml.imaging.videos.frame_table_file import load_frame_table
from ml.imaging.videos.video import probe_video
from ml.types import ImageU8
from tests.ml.imaging.conftest import tiff_bytes
from tests.ml.imaging.multi_file import inspected_apart

MakeVideo = Callable[..., Path]


def _inspect(path: Path, out: Path) -> dict[str, object]:
    out.mkdir(exist_ok=True)
    return inspect_slide(path=str(path), out_dir=str(out))


def _bomb_png(side: int) -> bytes:
    """A PNG of a few kilobytes that claims side x side pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        crc = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(4_000_000), 9)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [chunk(b"IHDR", header), chunk(b"IDAT", rows), chunk(b"IEND", b"")]
    )


def test_a_slide_is_described_and_its_thumbnail_written(pyramid: Path, tmp_path: Path) -> None:
    inspection = _inspect(pyramid, tmp_path / "out")
    assert inspection["kind"] == "slide"
    assert (inspection["width_px"], inspection["height_px"]) == (700, 600)
    assert inspection["mpp_x"] == inspection["mpp_y"] == pytest.approx(0.25)
    assert inspection["pixels"] is None
    assert [level["downsample"] for level in inspection["levels"]] == pytest.approx(
        [1, 2, 4, 8], rel=0.01
    )
    with Image.open(tmp_path / "out" / "thumbnail.jpg") as thumbnail:
        assert thumbnail.size == (512, 439)


def test_the_last_phase_of_an_inspection_does_not_say_that_the_job_is_done(
    pyramid: Path, make_video: MakeVideo, tmp_path: Path
) -> None:
    phases: list[str] = []
    video = make_video("a.mp4", "libx264", frames=3)
    for inspect, path in ((inspect_slide, pyramid), (inspect_video, video)):
        out = tmp_path / inspect.__name__
        out.mkdir()
        inspect(path=str(path), out_dir=str(out), progress=lambda *step: phases.append(step[2]))
    assert phases and "done" not in phases


def test_a_still_is_converted_to_a_pyramid_whose_tiles_pass_through(
    tmp_path: Path, gradient: ImageU8
) -> None:
    Image.fromarray(gradient).save(tmp_path / "s.png", dpi=(72, 72))
    inspection = _inspect(tmp_path / "s.png", tmp_path / "out")
    assert inspection["kind"] == "still"
    assert inspection["mpp_x"] is None  # 72 dpi is a layout hint
    assert inspection["pixels"] == "pixels.tif"
    with TileSource(tmp_path / "out" / "pixels.tif") as source:
        assert source.tile(0, 0, 0).passthrough
        assert (source.levels[0].width_px, source.levels[0].height_px) == (700, 600)


def test_a_photograph_is_rotated_upright(tmp_path: Path, gradient: ImageU8) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(gradient).save(tmp_path / "s.jpg", exif=exif)
    inspection = _inspect(tmp_path / "s.jpg", tmp_path / "out")
    assert (inspection["width_px"], inspection["height_px"]) == (600, 700)


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.bmp", "a.webp", "a.tif", "a.jp2", "a.j2k"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_every_kind_of_still_is_read(
    tmp_path: Path, gradient: ImageU8, name: str, mode: str
) -> None:
    Image.fromarray(gradient).convert(mode).save(tmp_path / name)
    inspection = _inspect(tmp_path / name, tmp_path / "out")
    assert (inspection["kind"], inspection["width_px"]) == ("still", 700)


def test_sixteen_bit_and_transparent_stills_are_read(tmp_path: Path) -> None:
    deep = np.full((40, 50, 3), 40_000, np.uint16)
    tifffile.imwrite(tmp_path / "deep.tif", deep, photometric="rgb")
    Image.new("RGBA", (50, 40), (255, 0, 0, 0)).save(tmp_path / "clear.png")
    for name, expected in (("deep.tif", 156), ("clear.png", 255)):
        _inspect(tmp_path / name, tmp_path / "out")
        with Image.open(tmp_path / "out" / "thumbnail.jpg") as thumbnail:
            assert abs(np.asarray(thumbnail).astype(int) - expected).max() <= 2


def test_ingesting_twice_gives_the_same_result(tmp_path: Path, gradient: ImageU8) -> None:
    Image.fromarray(gradient).save(tmp_path / "s.png")
    first = _inspect(tmp_path / "s.png", tmp_path / "out")
    pixels = (tmp_path / "out" / "pixels.tif").read_bytes()
    assert _inspect(tmp_path / "s.png", tmp_path / "out") == first
    assert (tmp_path / "out" / "pixels.tif").read_bytes() == pixels
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["pixels.tif", "thumbnail.jpg"]


@pytest.mark.parametrize("share", [0.02, 0.5, 0.97])
def test_a_truncated_pyramid_is_refused(pyramid: Path, tmp_path: Path, share: float) -> None:
    data = pyramid.read_bytes()
    cut = tmp_path / "cut.svs"
    cut.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(CorruptFileError, match="truncated"):
        _inspect(cut, tmp_path / "out")


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_a_truncated_svs_is_refused(tessera_data: Path, tmp_path: Path, share: float) -> None:
    data = (tessera_data / "histology/slides/cmu-1-small-region.svs").read_bytes()
    cut = tmp_path / "cut.svs"
    cut.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(CorruptFileError, match="truncated") as caught:
        _inspect(cut, tmp_path / "out")
    assert str(tmp_path) not in str(caught.value)


def test_a_truncated_ndpi_is_refused(tessera_data: Path, tmp_path: Path) -> None:
    data = (tessera_data / "histology/slides/fluorescence-dapi.ndpi").read_bytes()
    cut = tmp_path / "cut.ndpi"
    cut.write_bytes(data[: len(data) // 2])
    with pytest.raises(CorruptFileError):
        _inspect(cut, tmp_path / "out")


def test_a_tile_overwritten_with_noise_is_refused(pyramid: Path, tmp_path: Path) -> None:
    with tifffile.TiffFile(pyramid) as tiff:
        page = tiff.pages[0]
        offset, count = page.dataoffsets[-1], page.databytecounts[-1]
    data = bytearray(pyramid.read_bytes())
    data[offset : offset + count] = bytes(count)
    (tmp_path / "bad.tif").write_bytes(data)
    with pytest.raises(CorruptFileError, match="decoded"):
        _inspect(tmp_path / "bad.tif", tmp_path / "out")


def test_a_truncated_jpeg_is_refused(tmp_path: Path, gradient: ImageU8) -> None:
    out = io.BytesIO()
    Image.fromarray(gradient).save(out, "JPEG")
    (tmp_path / "cut.jpg").write_bytes(out.getvalue()[: len(out.getvalue()) // 2])
    with pytest.raises(CorruptFileError, match="decoded"):
        _inspect(tmp_path / "cut.jpg", tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_text_file_named_svs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.svs").write_text("not a slide\n")
    with pytest.raises(UnsupportedFormatError, match="text file"):
        _inspect(tmp_path / "x.svs", tmp_path / "out")


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.svs").touch()
    for inspect in (inspect_slide, inspect_video):
        with pytest.raises(UnsupportedFormatError, match="0 bytes"):
            inspect(path=str(tmp_path / "x.svs"), out_dir=str(tmp_path))


def test_a_tiff_that_claims_two_to_the_31_squared_is_refused(
    giant_tiff: Path, tmp_path: Path
) -> None:
    with pytest.raises(TooLargeError, match="2,147,483,648 x 2,147,483,648 px"):
        _inspect(giant_tiff, tmp_path / "out")


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_striped_tiff_bomb_is_refused(tmp_path: Path, order: str) -> None:
    entries = [
        (256, 4, 1, 60_000), (257, 4, 1, 60_000), (258, 3, 1, 8), (259, 3, 1, 8), (262, 3, 1, 1),
        (273, 4, 1, 8), (277, 3, 1, 1), (278, 4, 1, 60_000), (279, 4, 1, 16),
    ]  # fmt: skip
    (tmp_path / "bomb.tif").write_bytes(tiff_bytes(entries, order=order) + bytes(64))
    with pytest.raises(TooLargeError, match="60,000 x 60,000 px"):
        _inspect(tmp_path / "bomb.tif", tmp_path / "out")


def test_a_tiff_with_gigantic_tiles_is_refused(tmp_path: Path) -> None:
    entries = [
        (256, 4, 1, 90_000), (257, 4, 1, 90_000), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1),
        (277, 3, 1, 1), (322, 4, 1, 65_536), (323, 4, 1, 65_536), (324, 4, 1, 8), (325, 4, 1, 16),
    ]  # fmt: skip
    (tmp_path / "t.tif").write_bytes(tiff_bytes(entries) + bytes(64))
    with pytest.raises(TooLargeError, match="a tile of 65,536 x 65,536 px"):
        _inspect(tmp_path / "t.tif", tmp_path / "out")


def test_a_png_bomb_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    (tmp_path / "bomb.png").write_bytes(_bomb_png(60_000))
    with pytest.raises(TooLargeError, match="60,000 x 60,000 px"):
        _inspect(tmp_path / "bomb.png", tmp_path / "out")


def test_a_zip_bomb_is_refused_unopened(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.svs", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("slide.svs", bytes(20_000_000))
    with pytest.raises(UnsupportedFormatError, match="ZIP"):
        _inspect(tmp_path / "bomb.svs", tmp_path / "out")


def test_a_bomb_within_the_size_limits_is_stopped_by_the_limits_of_the_child(
    tmp_path: Path,
) -> None:
    # 20,000 x 20,000 claimed, almost nothing there: refused as cut, not filled up
    (tmp_path / "bomb.png").write_bytes(_bomb_png(20_000))
    with pytest.raises(BadInputError):
        run_limited(
            "ml.imaging.ingest:inspect_slide",
            {"path": str(tmp_path / "bomb.png"), "out_dir": str(tmp_path)},
            writes=(tmp_path,),
            limits=Limits(memory_bytes=2 * 1024**3, cpu_s=30, wall_s=120),
        )


def test_a_video_is_described(make_video: MakeVideo, tmp_path: Path) -> None:
    path = make_video("a.webm", "libvpx-vp9")
    inspection = inspect_video(path=str(path), out_dir=str(tmp_path))
    assert inspection["kind"] == "video"
    assert (inspection["frame_count"], inspection["codec"], inspection["container"]) == (
        60,
        "vp9",
        "webm",
    )
    assert inspection["browser_playable"] is True
    table = load_frame_table(tmp_path / "frames.npz")
    assert table.pts.tolist() == probe_video(path).frames.pts.tolist()
    with Image.open(tmp_path / "poster.jpg") as poster:
        assert poster.size == (192, 64)


@pytest.mark.slow
def test_a_truncated_video_is_stored_with_a_warning(make_video: MakeVideo, tmp_path: Path) -> None:
    path = make_video("a.mkv", "libx264", frames=200)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    reply = run_limited(
        "ml.imaging.ingest:inspect_video",
        {"path": str(path), "out_dir": str(tmp_path)},
        reads=(path,),
        writes=(tmp_path,),
    )
    assert 20 < reply["frame_count"] < 180
    assert "the file is truncated" in reply["warnings"][0]


def test_a_file_with_only_sound_is_refused(
    audio_only: Path, wav_file: Path, tmp_path: Path
) -> None:
    with pytest.raises(NoVideoStreamError):
        inspect_video(path=str(audio_only), out_dir=str(tmp_path))
    with pytest.raises(UnsupportedFormatError, match="audio"):
        inspect_video(path=str(wav_file), out_dir=str(tmp_path))


def test_a_video_uploaded_as_a_slide_is_detected(
    make_video: MakeVideo, pyramid: Path, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedFormatError, match="video"):
        _inspect(make_video("a.mp4", "libx264", frames=3), tmp_path / "out")
    with pytest.raises(UnsupportedFormatError, match="slide"):
        inspect_video(path=str(pyramid), out_dir=str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "cmu-1-small-region.svs",
        *(
            pytest.param(name, marks=pytest.mark.endurance)
            for name in ("tcga-cr-7395.svs", "her2st-c2.tif", "fluorescence-dapi.ndpi")
        ),
    ],
)
def test_real_slides_are_ingested_in_the_child(
    tessera_data: Path, tmp_path: Path, name: str
) -> None:
    path = tessera_data / "histology/slides" / name
    inspection = inspected_apart(path, tmp_path)
    assert inspection["kind"] == "slide"
    text = str(inspection).lower()
    assert not any(word in text for word in ("date", "scanscope", "user", "title", "filename"))


@pytest.mark.parametrize("bigtiff", [False, True])
def test_an_ome_tiff_is_a_slide_with_its_levels(
    tmp_path: Path, gradient: ImageU8, bigtiff: bool
) -> None:
    metadata = {"axes": "YXS", "PhysicalSizeX": 0.25, "PhysicalSizeY": 0.25}
    tiles = {"tile": (128, 128), "photometric": "rgb", "compression": "deflate"}
    scale = {"resolution": (40_000, 40_000), "resolutionunit": "CENTIMETER"}
    with tifffile.TiffWriter(tmp_path / "a", ome=True, bigtiff=bigtiff) as tiff:
        tiff.write(gradient, subifds=1, metadata=metadata, **tiles, **scale)
        tiff.write(gradient[::2, ::2].copy(), subfiletype=1, **tiles)
    inspection = _inspect(tmp_path / "a", tmp_path / "out")
    assert (inspection["kind"], inspection["width_px"], inspection["height_px"]) == (
        "slide",
        700,
        600,
    )
    assert inspection["mpp_x"] == inspection["mpp_y"] == pytest.approx(0.25)
    with open_slide(tmp_path / "a") as slide:
        assert [image.width_px for image in slide.stored] == [700, 350]
        assert np.array_equal(slide.read_region((0, 0), (700, 600), (700, 600)), gradient)
    planes = {**metadata, "axes": "CYX"}
    channels = np.moveaxis(gradient, -1, 0)
    tifffile.imwrite(tmp_path / "b", channels, ome=True, metadata=planes, tile=(128, 128))
    assert _inspect(tmp_path / "b", tmp_path / "out")["mpp_x"] == 0.25  # stated in XML alone
    with open_slide(tmp_path / "b") as slide:
        seen = slide.read_region((0, 0), (700, 600), (700, 600))
    assert np.array_equal(seen, np.repeat(gradient[..., :1], 3, axis=2))


def test_a_pyramid_is_written_atomically(tmp_path: Path, gradient: ImageU8) -> None:
    out = tmp_path / "p.tif"
    out.write_bytes(b"before")

    def cancel(done: int, total: int, phase: str) -> None:
        raise KeyboardInterrupt

    big = np.tile(gradient, (8, 8, 1))
    with pytest.raises(KeyboardInterrupt):
        write_pyramid(big, out, progress=cancel)
    assert out.read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["p.tif"]

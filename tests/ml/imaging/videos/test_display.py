"""Display geometry: orientation and pixel shape, the same for frames, pictures and rendition."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from ml.imaging.ingest import POSTER_NAME, inspect_video
from ml.imaging.videos.filmstrip import HEIGHT_PX, filmstrip
from ml.imaging.videos.transcode import transcode_h264
from ml.imaging.videos.video import iter_frames, probe_video, read_frame
from ml.mosaic.frames.sources import open_source
from ml.types import DisplayGeometry, ImageU8
from tests.ml.imaging.videos.sample_files import (
    COLOURS,
    MATRICES,
    Matrix,
    corners,
    disc,
    write_video,
)

ORDER = {
    "as stored": "0123",
    "mirrored left to right": "1032",
    "mirrored top to bottom": "2301",
    "turned by half": "3210",
    "turned clockwise": "2031",
    "turned anticlockwise": "1302",
    "transposed": "0213",
    "transposed across": "3120",
}
"""Indices of ``COLOURS`` at top left, top right, bottom left and bottom right."""
PAL = Fraction(64, 45)


def shown(rgb: ImageU8) -> str:
    """The corners of a picture, as indices of ``COLOURS``."""
    height, width = rgb.shape[:2]
    points = [rgb[height * y // 4, width * x // 4] for y in (1, 3) for x in (1, 3)]
    return "".join(
        str(int(np.abs(np.array(COLOURS) - point.astype(int)).sum(1).argmin())) for point in points
    )


def rgb_frame(rgb: ImageU8) -> av.VideoFrame:
    return av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format="yuv420p")


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("suffix", [".mp4", ".mov"])
def test_every_picture_is_oriented_by_the_display_matrix(
    tmp_path: Path, name: str, suffix: str
) -> None:
    frame = rgb_frame(corners())
    path = write_video(tmp_path / f"a{suffix}", frame, "libx264", matrix=MATRICES[name])
    info = probe_video(path)
    size = (240, 320) if "clockwise" in name or "transposed" in name else (320, 240)
    assert (info.width_px, info.height_px) == info.geometry.size == size
    pts = info.frames.pts.tolist()
    pictures = [read_frame(path, pts[2]), *(rgb for _, _, rgb in iter_frames(path, step=3))]
    data = json.loads(json.dumps(inspect_video(path=str(path), out_dir=str(tmp_path))))
    assert DisplayGeometry(**data["geometry"]) == info.geometry
    pictures.append(np.asarray(Image.open(tmp_path / POSTER_NAME)))
    strip = filmstrip(path, info.frames, [0], is_long=False)
    pictures.append(strip)
    transcode_h264(path, tmp_path / "web.mp4")
    rendition = probe_video(tmp_path / "web.mp4")
    assert rendition.geometry == DisplayGeometry(*size)
    pictures.append(read_frame(tmp_path / "web.mp4", int(rendition.frames.pts[2])))
    assert [shown(picture) for picture in pictures] == [ORDER[name]] * len(pictures)
    assert info.browser_playable is (
        "mirrored" not in name and "trans" not in name and suffix == ".mp4"
    )


@pytest.mark.parametrize("name", MATRICES)
def test_the_matrix_of_the_geometry_is_that_of_the_file(tmp_path: Path, name: str) -> None:
    """Orientations do not mix with the shape of pixels: what is stretched turns with the rest."""
    frame = rgb_frame(corners())
    path = write_video(
        tmp_path / "a.mp4", frame, "libx264", matrix=MATRICES[name], aspect=Fraction(2)
    )
    info = probe_video(path)
    is_on_its_side = info.geometry.quarter_turns % 2 == 1
    assert info.geometry.size == ((240, 640) if is_on_its_side else (640, 240))
    assert info.geometry.file_size == ((240, 320) if is_on_its_side else (320, 240))
    assert shown(read_frame(path, int(info.frames.pts[0]))) == ORDER[name]


@pytest.mark.parametrize("matrix", [(0, 0, 0, 0), (1, 1, -1, 1), (3, 0, 3, 0)])
def test_a_matrix_that_is_no_quarter_turn_is_ignored_with_a_warning(
    tmp_path: Path, matrix: Matrix
) -> None:
    path = write_video(tmp_path / "a.mp4", rgb_frame(corners()), "libx264", matrix=matrix)
    info = probe_video(path)
    assert info.geometry.quarter_turns == 0
    assert shown(read_frame(path, int(info.frames.pts[0]))) == ORDER["as stored"]
    assert any("display matrix" in warning for warning in info.warnings)


def box_of_disc(rgb: ImageU8) -> tuple[float, float, float, float]:
    """Centre x and y, width and height of what is bright, px."""
    y, x = np.nonzero(rgb[..., 1] > 130)
    return (
        (x.min() + x.max() + 1) / 2,
        (y.min() + y.max() + 1) / 2,
        float(np.ptp(x)) + 1,
        float(np.ptp(y)) + 1,
    )


@pytest.mark.parametrize(
    ("name", "codec", "stored", "aspect", "size"),
    [
        ("a.mp4", "libx264", (720, 576), PAL, (1024, 576)),
        ("a.mkv", "libx264", (720, 576), Fraction(16, 15), (768, 576)),
        ("a.avi", "mpeg4", (720, 480), Fraction(10, 11), (720, 528)),
        ("a.ts", "mpeg2video", (704, 576), Fraction(16, 11), (1024, 576)),
        ("a.mp4", "libx264", (720, 288), Fraction(8, 15), (720, 540)),
        ("a.mp4", "libx264", (322, 240), Fraction(77, 76), (326, 240)),
    ],
)
def test_a_circle_is_round_in_every_rendition(
    tmp_path: Path,
    name: str,
    codec: str,
    stored: tuple[int, int],
    aspect: Fraction,
    size: tuple[int, int],
) -> None:
    frame = rgb_frame(disc(stored, aspect, 200))
    path = write_video(tmp_path / name, frame, codec, aspect=aspect)
    info = probe_video(path)
    assert info.geometry == DisplayGeometry(*stored, aspect.numerator, aspect.denominator)
    assert (info.width_px, info.height_px) == size
    transcode_h264(path, tmp_path / "web.mp4")
    rendition = probe_video(tmp_path / "web.mp4")
    assert rendition.geometry == DisplayGeometry(*size)
    for item, pts in ((path, info.frames.pts[2]), (tmp_path / "web.mp4", rendition.frames.pts[2])):
        rgb = read_frame(item, int(pts))
        assert rgb.shape == (size[1], size[0], 3)
        expected = (size[0] / 2, size[1] / 2, 200, 200)
        assert box_of_disc(rgb) == pytest.approx(expected, abs=3)


def test_a_mosaic_is_made_of_displayed_frames(tmp_path: Path) -> None:
    frame = rgb_frame(corners())
    path = write_video(
        tmp_path / "a.mp4", frame, "libx264", matrix=MATRICES["transposed"], aspect=Fraction(2)
    )
    frames = [item.rgb for item in open_source(path).frames()]
    assert len(frames) == 6
    for rgb in frames:
        assert rgb is not None and rgb.shape == (640, 240, 3)
        assert shown(rgb) == ORDER["transposed"]


def test_the_filmstrip_shows_square_pixels(tmp_path: Path) -> None:
    frame = rgb_frame(disc((720, 576), PAL, 400))
    path = write_video(tmp_path / "a.mp4", frame, "libx264", aspect=PAL)
    strip = filmstrip(path, probe_video(path).frames, [0], is_long=True)
    assert strip.shape == (HEIGHT_PX, 160, 3)
    _, _, width, height = box_of_disc(strip)
    assert width == pytest.approx(height, abs=2)


@pytest.mark.parametrize("aspect", [Fraction(1, 100), Fraction(9), Fraction(1, 5)])
def test_an_absurd_pixel_shape_is_ignored_with_a_warning(tmp_path: Path, aspect: Fraction) -> None:
    path = write_video(tmp_path / "a.mp4", rgb_frame(corners()), "libx264", aspect=aspect)
    info = probe_video(path)
    assert info.geometry == DisplayGeometry(320, 240)
    stated = f"{aspect.numerator}:{aspect.denominator}"
    assert any(stated in warning for warning in info.warnings)


def test_the_container_has_precedence_over_the_codec(tmp_path: Path) -> None:
    """Write as FFmpeg does: a container can be mended without encoding the stream again."""
    path = write_video(tmp_path / "a.mp4", rgb_frame(corners()), "libx264", aspect=Fraction(4, 3))
    data = path.read_bytes()
    at = data.index(b"pasp") + 4
    assert data[at : at + 8] == bytes([0, 0, 0, 4, 0, 0, 0, 3])
    path.write_bytes(data[:at] + bytes([0, 0, 0, 2, 0, 0, 0, 1]) + data[at + 8 :])
    assert probe_video(path).geometry == DisplayGeometry(320, 240, 2, 1)


@pytest.mark.parametrize("later", [(360, 288), (720, 576)])
def test_frames_of_another_shape_are_shown_at_the_size_of_the_first(
    tmp_path: Path, later: tuple[int, int]
) -> None:
    """Second part of another size or pixel shape: a transport stream may change."""
    joined = b""
    for number, (size, aspect) in enumerate((((720, 576), PAL), (later, Fraction(16, 15)))):
        frame = rgb_frame(corners(size))
        part = write_video(tmp_path / f"{number}.ts", frame, "mpeg2video", aspect=aspect, count=12)
        joined += part.read_bytes()
    path = tmp_path / "joined.ts"
    path.write_bytes(joined)
    info = probe_video(path)
    assert info.geometry.size == (1024, 576)
    assert any("changes on the way" in warning for warning in info.warnings)
    shapes = {rgb.shape for _, _, rgb in iter_frames(path)}
    last = read_frame(path, int(info.frames.pts[-1]))
    assert shapes | {last.shape} == {(576, 1024, 3)}
    assert shown(last) == ORDER["as stored"]

"""Colours of frames and of the rendition: matrix, range, depth, wide gamut, high dynamic range."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from ml.imaging.videos.transcode import transcode_h264
from ml.imaging.videos.video import probe_video, read_frame
from ml.types import ArrayF64
from tests.ml.imaging.videos.sample_files import (
    COLOURS,
    Tags,
    middles,
    off_by,
    patches,
    write_video,
    yuv_frame,
)

SD, HD = (160, 120), (160, 720)
BT709, BT601, PAL = Tags(1, 1, 1, 1), Tags(6, 6, 6, 1), Tags(5, 5, 6, 1)
CASES = [
    pytest.param("a.avi", "mjpeg", HD, "601", "yuvj422p", Tags(), id="mjpeg-hd"),
    pytest.param("a.mov", "mjpeg", SD, "601", "yuvj420p", Tags(), id="mjpeg-sd"),
    pytest.param("a.mp4", "libx264", SD, "601", "yuv420p", Tags(), id="untagged-sd"),
    pytest.param("a.mp4", "libx264", HD, "709", "yuv420p", Tags(), id="untagged-hd"),
    pytest.param("a.avi", "mpeg4", HD, "709", "yuv420p", Tags(), id="untagged-hd-avi"),
    pytest.param("a.mkv", "libx264", SD, "709", "yuv420p", BT709, id="709-sd"),
    pytest.param("a.mkv", "libx264", HD, "601", "yuv420p", BT601, id="601-hd"),
    pytest.param("a.mkv", "libx264", HD, "601", "yuv420p", Tags(matrix=6), id="matrix-only"),
    pytest.param("a.ts", "mpeg2video", HD, "601", "yuv420p", PAL, id="mpeg2-601-hd"),
    pytest.param("a.mp4", "libx264", HD, "709", "yuvj420p", Tags(1, 1, 1, 2), id="709-full"),
    pytest.param("a.mp4", "libx264", HD, "601", "yuvj420p", Tags(range=2), id="untagged-full"),
    pytest.param("a.webm", "libvpx-vp9", HD, "601", "yuv420p", Tags(), id="vp9-untagged-hd"),
    pytest.param("a.webm", "libvpx-vp9", SD, "709", "yuv420p", BT709, id="vp9-709-sd"),
    pytest.param("a.webm", "libvpx", HD, "601", "yuv420p", Tags(), id="vp8-hd"),
    pytest.param("a.mkv", "libx265", HD, "709", "yuv420p10le", BT709, id="hevc-10-bit"),
    pytest.param("a.mp4", "libx264", SD, "601", "yuv420p10le", Tags(), id="h264-10-bit-sd"),
]


@pytest.mark.parametrize(("name", "codec", "size", "matrix", "pix_fmt", "tags"), CASES)
def test_frames_and_rendition_have_the_recorded_colours(
    tmp_path: Path,
    name: str,
    codec: str,
    size: tuple[int, int],
    matrix: str,
    pix_fmt: str,
    tags: Tags,
) -> None:
    is_full = pix_fmt.startswith("yuvj")
    frame = yuv_frame(patches(size), matrix, pix_fmt, is_full=is_full)
    path = write_video(tmp_path / name, frame, codec, tags=tags)
    pts = int(probe_video(path).frames.pts[2])
    assert off_by(middles(read_frame(path, pts))) <= 4
    _rendition_shows(path, tmp_path / "web.mp4")


def _rendition_shows(path: Path, out: Path) -> None:
    transcode_h264(path, out)
    info = probe_video(out)
    assert info.browser_playable
    assert off_by(middles(read_frame(out, int(info.frames.pts[2])))) <= 4
    with av.open(str(out)) as container:
        frame = next(container.decode(video=0))
    stated = (frame.colorspace, frame.color_primaries, frame.color_trc, frame.color_range)
    assert 2 not in stated[:3]
    assert stated[3] == 1


@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt"),
    [("a.avi", "rawvideo", "bgr24"), ("a.mkv", "ffv1", "bgra"), ("a.mkv", "libx264rgb", "rgb24")],
)
def test_rgb_is_preserved(tmp_path: Path, name: str, codec: str, pix_fmt: str) -> None:
    rgb = np.rint(patches(HD) * 255).astype(np.uint8)
    frame = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format=pix_fmt)
    path = write_video(tmp_path / name, frame, codec, options={"qp": "0"})
    pts = int(probe_video(path).frames.pts[2])
    assert off_by(middles(read_frame(path, pts))) <= 1
    _rendition_shows(path, tmp_path / "web.mp4")


@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt", "black", "white"),
    [
        ("a.mkv", "ffv1", "gray", 0, 255),
        ("a.mkv", "ffv1", "gray16le", 0, 65_535),
        ("a.mkv", "libx264", "gray", 16, 235),
    ],
)
def test_grey_is_preserved(
    tmp_path: Path, name: str, codec: str, pix_fmt: str, black: int, white: int
) -> None:
    levels = np.repeat([0.0, 0.25, 0.5, 1.0], 64)[None].repeat(64, 0)
    stored = np.rint(black + levels * (white - black))
    stored = stored.astype(np.uint16 if white > 255 else np.uint8)
    frame = av.VideoFrame.from_ndarray(stored, format=pix_fmt)
    path = write_video(tmp_path / name, frame, codec)
    transcode_h264(path, tmp_path / "web.mp4")
    for item in (path, tmp_path / "web.mp4"):
        colours = middles(read_frame(item, int(probe_video(item).frames.pts[2])))
        expected = np.array([0, 64, 128, 255])[:, None]
        assert np.abs(np.array(colours, int) - expected).max() <= 4


def _linear(rgb: ArrayF64) -> ArrayF64:
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _encoded(linear: ArrayF64) -> ArrayF64:
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)


def _pq(linear: ArrayF64) -> ArrayF64:
    """BT.2100-2, table 4, with the reference white at 203 cd/m2."""
    y = (linear * 203 / 10_000) ** 0.1593017578125
    return ((0.8359375 + 18.8515625 * y) / (1 + 18.6875 * y)) ** 78.84375


def _hlg(linear: ArrayF64) -> ArrayF64:
    """BT.2100-2, table 5: the inverse of the display's gamma 1.2 at 1,000 cd/m2, and the OETF."""
    display = linear * 203 / 1_000
    luma = display @ [0.2627, 0.6780, 0.0593]
    scene = display * luma[..., None] ** (1 / 1.2 - 1)
    root = np.sqrt(3 * scene)
    bright = 0.17883277 * np.log(np.maximum(12 * scene - 0.28466892, 1e-9)) + 0.55991073
    return np.where(scene <= 1 / 12, root, bright)


TO_BT2020 = np.linalg.inv(
    [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]]
)
"""Linear RGB of BT.709 to BT.2020."""


@pytest.mark.parametrize(
    ("encode", "transfer", "name"), [(_encoded, 14, ""), (_pq, 16, "PQ"), (_hlg, 18, "HLG")]
)
def test_wide_gamut_and_high_dynamic_range_are_converted(
    tmp_path: Path, encode: object, transfer: int, name: str
) -> None:
    assert callable(encode)
    wide = encode(_linear(patches(HD)) @ TO_BT2020.T)
    frame = yuv_frame(wide, "2020", "yuv420p10le")
    path = write_video(tmp_path / "a.mkv", frame, "libx265", tags=Tags(9, 9, transfer, 1))
    info = probe_video(path)
    assert off_by(middles(read_frame(path, int(info.frames.pts[2])))) <= 5
    assert any(f"({name})" in warning for warning in info.warnings) is bool(name)
    _rendition_shows_within_five(path, tmp_path / "web.mp4")


def _rendition_shows_within_five(path: Path, out: Path) -> None:
    transcode_h264(path, out)
    assert off_by(middles(read_frame(out, int(probe_video(out).frames.pts[2])))) <= 5


def test_highlights_of_a_high_dynamic_range_keep_their_order(tmp_path: Path) -> None:
    """Up to twenty times the white of an ordinary screen."""
    levels = np.repeat([0.5, 1.0, 4.0, 20.0], 64)[None, :, None].repeat(64, 0).repeat(3, 2)
    frame = yuv_frame(_pq(levels), "2020", "yuv420p10le")
    path = write_video(tmp_path / "a.mkv", frame, "libx265", tags=Tags(9, 9, 16, 1))
    colours = [
        colour[1] for colour in middles(read_frame(path, int(probe_video(path).frames.pts[2])))
    ]
    assert colours == sorted(colours)
    assert colours[0] == pytest.approx(188, abs=4)
    assert colours[1] > colours[0] + 20


@pytest.mark.parametrize(
    ("name", "codec", "tags", "size", "is_played"),
    [
        ("a.mp4", "libx264", Tags(), HD, True),
        ("a.mp4", "libx264", BT709, SD, True),
        ("a.mp4", "libx264", BT601, HD, True),
        ("a.mp4", "libx264", Tags(matrix=1), SD, False),
        ("a.mp4", "libx264", Tags(primaries=1, transfer=1), HD, False),
        ("a.mp4", "libx264", Tags(5, 5, 1, 1), SD, False),
        ("a.mp4", "libx264", Tags(5, 5, 5, 1), SD, False),
        ("a.mp4", "libx264", Tags(9, 9, 14, 1), HD, False),
        ("a.mp4", "libx264", Tags(9, 9, 16, 1), HD, False),
        ("a.webm", "libvpx-vp9", Tags(), HD, True),
        ("a.webm", "libvpx-vp9", Tags(range=2), SD, False),
        ("a.webm", "libvpx", Tags(), SD, True),
        ("a.webm", "libvpx", Tags(), HD, False),
    ],
)
def test_the_original_is_played_only_if_browsers_show_its_colours(
    tmp_path: Path, name: str, codec: str, tags: Tags, size: tuple[int, int], is_played: bool
) -> None:
    frame = yuv_frame(patches(size), "601", is_full=tags.range == 2)
    path = write_video(tmp_path / name, frame, codec, tags=tags)
    assert probe_video(path).browser_playable is is_played


def test_the_colours_of_the_samples_differ_between_the_matrices() -> None:
    """Otherwise these tests would prove nothing."""
    as_601, as_709 = (yuv_frame(patches(SD), name).to_ndarray() for name in ("601", "709"))
    assert np.abs(as_601.astype(int) - as_709.astype(int)).max() > 8
    assert len(COLOURS) == 4

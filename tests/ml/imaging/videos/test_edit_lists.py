"""Files that show less than they hold, or state more than they show."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest

from ml.imaging.videos.transcode import transcode_h264
from ml.imaging.videos.truncation import is_cut
from ml.imaging.videos.video import iter_frames, probe_video, read_frame
from tests.ml.imaging.conftest import number_of
from tests.ml.imaging.videos.test_frame_access import KEEP, Recipe, write

MakeVideo = Callable[..., Path]
TRIMMED = 20  # frames before the first that is shown


@pytest.fixture
def trimmed(make_video: MakeVideo, tmp_path: Path) -> Path:
    """Sixty frames, copied so that an edit list leaves out the first twenty, as cutters do."""
    source = make_video("whole.mp4", "libx264", options={"g": "30", "bf": "2"})
    path = tmp_path / "trimmed.mp4"
    options = {"avoid_negative_ts": "disabled", "use_editlist": "1"}
    with av.open(str(source)) as read, av.open(str(path), "w", options=options) as target:
        stream = target.add_stream_from_template(read.streams.video[0])
        shift = round(TRIMMED / 25 / read.streams.video[0].time_base)
        for packet in read.demux(read.streams.video[0]):
            if packet.size:
                packet.pts, packet.dts, packet.stream = (
                    packet.pts - shift,
                    packet.dts - shift,
                    stream,
                )
                target.mux(packet)
    return path


def test_frames_outside_the_edit_list_are_not_shown(trimmed: Path, tmp_path: Path) -> None:
    info = probe_video(trimmed)
    table = info.frames
    assert [number_of(rgb) for _, _, rgb in iter_frames(trimmed)] == list(range(TRIMMED, 60))
    assert table.time_s == pytest.approx(np.arange(60 - TRIMMED) / 25, abs=1e-6)
    for n in (39, 0, 11, 3):
        frame = read_frame(trimmed, int(table.pts[n]), table=table)
        assert number_of(frame) == TRIMMED + n
    assert info.warnings == ()
    assert not info.browser_playable, "browsers differ in what they show of it"
    transcode_h264(trimmed, tmp_path / "web.mp4", table=table)
    web = [number_of(rgb) for _, _, rgb in iter_frames(tmp_path / "web.mp4")]
    assert web == list(range(TRIMMED, 60))


def test_an_empty_entry_of_the_edit_list_delays_the_frames(tmp_path: Path) -> None:
    late = Recipe("late.mp4", "libx264", stamps=lambda n: 60 + n, options=KEEP | {"bf": "2"})
    path = write(late, tmp_path)
    data = path.read_bytes()
    at = data.index(b"elst") + 12  # behind version, flags and the number of entries
    first = struct.unpack(">Ii", data[at : at + 8])  # duration, media time
    assert first == (2_400, -1)
    info = probe_video(path)
    assert [number_of(rgb) for _, _, rgb in iter_frames(path)] == list(range(60))
    assert info.frames.time_s == pytest.approx((60 + np.arange(60)) / 25)
    assert number_of(read_frame(path, int(info.frames.pts[41]), table=info.frames)) == 41
    assert info.duration_s == pytest.approx(60 / 25)


def test_a_false_frame_count_in_the_header_is_ignored(make_video: MakeVideo) -> None:
    path = make_video("a.avi", "mpeg4")
    data = bytearray(path.read_bytes())
    for chunk, at in ((b"avih", 24), (b"strh", 40)):  # dwTotalFrames, dwLength
        place = data.index(chunk) + at
        assert int.from_bytes(data[place : place + 4], "little") == 60
        data[place : place + 4] = (6_000).to_bytes(4, "little")
    path.write_bytes(bytes(data))
    info = probe_video(path)
    assert (len(info.frames), info.warnings) == (60, ())
    assert info.duration_s == pytest.approx(60 / 25)


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.webm", "a.avi", "a.wmv"])
def test_a_file_without_its_last_element_is_truncated(make_video: MakeVideo, name: str) -> None:
    codec = {"a.webm": "libvpx", "a.wmv": "wmv2", "a.avi": "mpeg4"}.get(name, "libx264")
    path = make_video(name, codec, frames=20)
    assert not is_cut(path)
    data = path.read_bytes()
    path.write_bytes(data + b"\xffsomething else behind it")
    assert not is_cut(path)
    path.write_bytes(data[: len(data) // 2])
    assert is_cut(path)


def test_a_cover_picture_is_no_frame(make_video: MakeVideo, tmp_path: Path) -> None:
    source = make_video("film.mp4", "libx264", frames=30)
    path = tmp_path / "covered.mp4"
    with av.open(str(source)) as read, av.open(str(path), "w") as target:
        cover = target.add_stream("mjpeg", rate=25)
        cover.width, cover.height, cover.pix_fmt = 640, 480, "yuvj420p"
        cover.disposition = av.stream.Disposition.attached_pic
        film = target.add_stream_from_template(read.streams.video[0])
        picture = av.VideoFrame.from_ndarray(np.full((480, 640, 3), 90, np.uint8), format="rgb24")
        target.mux([*cover.encode(picture), *cover.encode(None)])
        for packet in read.demux(read.streams.video[0]):
            if packet.size:
                packet.stream = film
                target.mux(packet)
    info = probe_video(path)
    assert info.geometry.size == (192, 64)
    assert [number_of(rgb) for _, _, rgb in iter_frames(path)] == list(range(30))

"""Videos whose frames show their own number: tables, frames by PTS, cuts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from ml.errors import CorruptFileError, FrameNotFoundError, NoVideoStreamError
from ml.imaging.videos import containers, frame_access, frame_table
from ml.imaging.videos.containers import decode_frames
from ml.imaging.videos.transcode import transcode_h264
from ml.imaging.videos.video import iter_frames, poster_frame, probe_video, read_frame
from tests.ml.imaging.conftest import number_of

MakeVideo = Callable[..., Path]

KINDS = [
    pytest.param("a.mp4", "libx264", {"muxing": {"movflags": "+faststart"}}, id="h264-mp4"),
    pytest.param("a.mkv", "libx264", {}, id="h264-mkv"),
    pytest.param("a.mov", "mjpeg", {"pix_fmt": "yuvj420p"}, id="mjpeg-mov"),
    pytest.param("a.webm", "libvpx-vp9", {}, id="vp9-webm"),
    pytest.param("a.webm", "libvpx", {}, id="vp8-webm"),
    pytest.param("a.avi", "mpeg4", {}, id="mpeg4-avi"),
    pytest.param("a.wmv", "wmv2", {}, id="wmv2-asf"),
    pytest.param("a.mpg", "mpeg2video", {"container": "vob"}, id="mpeg2-ps"),
    pytest.param("a.ts", "libx264", {"container": "mpegts"}, id="h264-ts"),
]


@pytest.mark.parametrize(("name", "codec", "extra"), KINDS)
def test_every_frame_is_listed_and_read_exactly_by_its_pts(
    make_video: MakeVideo, name: str, codec: str, extra: dict[str, object]
) -> None:
    path = make_video(name, codec, **extra)
    info = probe_video(path)
    assert len(info.frames) == 60
    assert (info.width_px, info.height_px) == (192, 64)
    assert np.all(np.diff(info.frames.pts) > 0)
    assert info.fps == pytest.approx(25, rel=0.03)
    assert info.warnings == ()
    for n in (0, 1, 17, 31, 58, 59):
        assert number_of(read_frame(path, int(info.frames.pts[n]))) == n


@pytest.mark.parametrize(("name", "codec", "extra"), KINDS)
def test_iteration_agrees_with_the_table(
    make_video: MakeVideo, name: str, codec: str, extra: dict[str, object]
) -> None:
    path = make_video(name, codec, frames=30, **extra)
    table = probe_video(path).frames
    met = [(index, pts, number_of(rgb)) for index, pts, rgb in iter_frames(path)]
    assert met == [(n, int(table.pts[n]), n) for n in range(30)]


@pytest.mark.parametrize(("name", "codec", "extra"), KINDS)
def test_a_late_span_is_reached_without_decoding_earlier_frames(
    make_video: MakeVideo,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    codec: str,
    extra: dict[str, object],
) -> None:
    path = make_video(name, codec, frames=150, options={"g": "10"}, **extra)
    table = probe_video(path).frames
    decoded: list[int] = []

    def counted(*arguments: object, **options: object) -> Iterator[tuple[int, object]]:
        for number, frame in decode_frames(*arguments, **options):  # type: ignore[arg-type]
            decoded.append(number)
            yield number, frame

    monkeypatch.setattr(frame_access, "decode_frames", counted)
    span = {"start_pts": int(table.pts[120]), "stop_pts": int(table.pts[130])}
    met = [(i, p, number_of(rgb)) for i, p, rgb in iter_frames(path, table=table, **span)]
    assert met == [(n, int(table.pts[n]), n) for n in range(120, 131)]
    if name != "a.mpg":  # such small frames share packets, so that few can be sought
        assert len(decoded) < 80


def test_iteration_supports_steps_between_two_time_stamps(make_video: MakeVideo) -> None:
    path = make_video("a.mp4", "libx264")
    pts = probe_video(path).frames.pts
    met = [
        index
        for index, _, _ in iter_frames(path, step=5, start_pts=int(pts[10]), stop_pts=int(pts[30]))
    ]
    assert met == [10, 15, 20, 25, 30]


def test_uneven_time_stamps_are_preserved(make_video: MakeVideo) -> None:
    pts = [0, 3, 4, 9, 20, 21, 40, 77, 78, 90]
    path = make_video("a.mkv", "libx264", frames=10, pts=pts, base=Fraction(1, 100))
    table = probe_video(path).frames
    assert table.time_s == pytest.approx(np.array(pts) / 100)
    assert number_of(read_frame(path, int(table.pts[7]))) == 7


def test_packets_and_decoding_give_the_same_table(
    make_video: MakeVideo, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_video("a.mp4", "libx264", frames=120)
    quick = probe_video(path).frames
    monkeypatch.setattr(frame_table, "_TRUSTED_CONTAINERS", ("nothing",))
    slow = probe_video(path).frames
    assert quick.pts.tolist() == slow.pts.tolist()
    assert quick.key.tolist() == slow.key.tolist()


def test_a_time_stamp_between_two_frames_is_refused(make_video: MakeVideo) -> None:
    path = make_video("a.mp4", "libx264")
    pts = probe_video(path).frames.pts
    for wrong in (int(pts[20]) + 1, int(pts[-1]) + 10_000_000, -5_000_000):
        with pytest.raises(FrameNotFoundError, match=f"no frame has the time stamp {wrong}"):
            read_frame(path, wrong)


@pytest.mark.parametrize(
    ("name", "codec", "extra"),
    [KINDS[0], KINDS[1], KINDS[3], KINDS[5], KINDS[7]],
)
def test_a_file_cut_in_half_has_its_decodable_frames_and_a_warning(
    make_video: MakeVideo, name: str, codec: str, extra: dict[str, object]
) -> None:
    path = make_video(name, codec, frames=200, **extra)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    info = probe_video(path)
    assert 20 < len(info.frames) < 180
    if not name.endswith(".mpg"):  # a program stream promises no length: nothing tells of the cut
        assert any("truncated" in warning for warning in info.warnings)
    last = len(info.frames) - 3
    assert number_of(read_frame(path, int(info.frames.pts[last]))) == last


def test_a_truncated_mp4_without_its_index_is_refused(make_video: MakeVideo) -> None:
    path = make_video("a.mp4", "libx264", frames=200)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(CorruptFileError, match="index"):
        probe_video(path)


def test_a_file_with_only_sound_is_no_video(audio_only: Path) -> None:
    with pytest.raises(NoVideoStreamError, match="audio"):
        probe_video(audio_only)


def test_garbage_after_a_video_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.mp4"
    path.write_bytes(b"\0\0\0\x18ftypisom" + bytes(400))
    with pytest.raises(CorruptFileError):
        probe_video(path)


@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt", "playable"),
    [
        ("a.mp4", "libx264", "yuv420p", True),
        ("a.mp4", "libx264", "yuv444p", False),
        ("a.mp4", "mpeg4", "yuv420p", False),
        ("a.webm", "libvpx-vp9", "yuv420p", True),
        ("a.mkv", "libx264", "yuv420p", False),
        ("a.mov", "libx264", "yuv420p", False),
        ("a.avi", "mpeg4", "yuv420p", False),
    ],
)
def test_browser_playable_formats_are_recognised(
    make_video: MakeVideo, name: str, codec: str, pix_fmt: str, playable: bool
) -> None:
    path = make_video(name, codec, frames=5, pix_fmt=pix_fmt)
    assert probe_video(path).browser_playable is playable


def test_frames_are_rotated_by_the_display_matrix(make_video: MakeVideo) -> None:
    path = make_video("a.mp4", "libx264", frames=5, rotation_deg=90)
    info = probe_video(path)
    assert (info.width_px, info.height_px) == (64, 192)
    rgb = read_frame(path, int(info.frames.pts[3]))
    assert rgb.shape == (192, 64, 3)
    with av.open(str(path)) as container:
        turned = next(container.decode(video=0)).rotation
    assert number_of(np.rot90(rgb, -turned // 90)) == 3


@pytest.mark.parametrize(
    ("name", "codec", "extra", "bits", "is_interlaced"),
    [
        ("a.mkv", "libx265", {"pix_fmt": "yuv420p10le"}, 10, False),
        ("a.mp4", "libx264", {"pix_fmt": "yuv420p10le"}, 10, False),
        ("a.mpg", "mpeg2video", {"container": "vob", "options": {"flags": "+ildct+ilme"}}, 8, True),
        ("a.mp4", "libx264", {"options": {"flags": "+ildct+ilme"}}, 8, True),
    ],
)
def test_ten_bit_and_interlaced_videos_lose_no_frame(
    make_video: MakeVideo, name: str, codec: str, extra: dict[str, object], bits: int,
    is_interlaced: bool,
) -> None:  # fmt: skip
    """Also in the rendition for browsers. The two fields of a frame stay one picture."""
    path = make_video(name, codec, **extra)
    with av.open(str(path)) as container:
        first = next(container.decode(video=0))
    assert (first.format.components[0].bits, first.interlaced_frame) == (bits, is_interlaced)
    transcode_h264(path, path.with_name("web.mp4"))
    assert probe_video(path.with_name("web.mp4")).browser_playable
    for item in (path, path.with_name("web.mp4")):
        table = probe_video(item).frames
        assert [number_of(rgb) for _, _, rgb in iter_frames(item)] == list(range(60))
        assert number_of(read_frame(item, int(table.pts[31]))) == 31


def test_the_poster_skips_a_black_lead_in(make_video: MakeVideo) -> None:
    path = make_video("a.mp4", "libx264", frames=40)
    poster = poster_frame(path, probe_video(path))
    assert poster.std() > 20


def test_frames_beyond_the_limit_are_refused_by_the_decoder(
    make_video: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream may announce small frames and send large ones: those are never allocated."""
    path = make_video("a.mp4", "libx264", frames=8)
    monkeypatch.setattr(containers, "require_frame_size", lambda *size: None)
    monkeypatch.setattr(containers, "MAX_FRAME_SIDE_PX", 64)
    with pytest.raises(CorruptFileError, match="decoded"):
        probe_video(path)


def test_an_unknown_codec_raises_an_error_with_its_name(make_video: Callable[..., Path]) -> None:
    path = make_video("a.mp4", "libx264", frames=8)
    path.write_bytes(path.read_bytes().replace(b"avc1", b"zzzz"))
    with pytest.raises(CorruptFileError, match="codec"):
        probe_video(path)


def test_frames_are_read_if_seeking_fails(
    make_video: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged index refuses every seek; reading from the start still leads to the frame."""
    path = make_video("a.avi", "mpeg4", container="avi")
    table = probe_video(path).frames
    expected = read_frame(path, int(table.pts[40]), table=table)
    calls: list[int] = []

    def lost(*arguments: object) -> bool:
        calls.append(1)
        return False

    monkeypatch.setattr(frame_access, "seek_to", lost)
    assert np.array_equal(read_frame(path, int(table.pts[40]), table=table), expected)
    late = iter_frames(path, start_pts=int(table.pts[58]), table=table)
    assert [index for index, _, _ in late] == [58, 59]
    assert probe_video(path).frames.pts.tolist() == table.pts.tolist()
    assert calls

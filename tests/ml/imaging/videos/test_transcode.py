"""The web rendition: frame n is frame n of the original, at the same time."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from ml.errors import CancelledError, NoVideoStreamError
from ml.imaging.videos.transcode import transcode_h264, write_clip
from ml.imaging.videos.video import iter_frames, probe_video, read_frame
from tests.ml.imaging.conftest import number_of

MakeVideo = Callable[..., Path]


@pytest.mark.parametrize(
    ("name", "codec", "extra"),
    [
        ("a.avi", "mpeg4", {}),
        ("a.wmv", "wmv2", {}),
        ("a.mpg", "mpeg2video", {"container": "vob"}),
        ("a.mkv", "libx264", {"options": {"bf": "3"}}),
    ],
)
def test_every_frame_retains_its_number_and_its_time(
    make_video: MakeVideo, tmp_path: Path, name: str, codec: str, extra: dict[str, object]
) -> None:
    path = make_video(name, codec, frames=70, **extra)
    out = tmp_path / "out.mp4"
    rendition = transcode_h264(path, out)
    before, after = probe_video(path), probe_video(out)
    assert rendition.frames == 70
    assert rendition.offset_pts == 0
    assert after.browser_playable
    assert after.warnings == ()
    assert after.frames.time_s == pytest.approx(before.frames.time_s, abs=1e-9)
    assert [number_of(rgb) for _, _, rgb in iter_frames(out)] == list(range(70))


def test_uneven_time_stamps_are_preserved(make_video: MakeVideo, tmp_path: Path) -> None:
    pts = [7, 11, 12, 90, 95, 180, 181]
    path = make_video("a.mkv", "libx264", frames=7, pts=pts, base=Fraction(1, 1_000))
    transcode_h264(path, tmp_path / "out.mp4")
    after = probe_video(tmp_path / "out.mp4").frames
    assert after.time_s == pytest.approx([p / 1_000 for p in pts], abs=1e-9)
    assert number_of(read_frame(tmp_path / "out.mp4", int(after.pts[5]))) == 5


def test_the_start_time_of_a_recorder_is_subtracted(make_video: MakeVideo, tmp_path: Path) -> None:
    pts = [3_600_000 + 40 * n for n in range(10)]
    path = make_video("a.mkv", "libx264", frames=10, pts=pts, base=Fraction(1, 1_000))
    rendition = transcode_h264(path, tmp_path / "out.mp4")
    after = probe_video(tmp_path / "out.mp4").frames
    assert rendition.offset_pts == 3_600_000
    assert after.time_s == pytest.approx([n / 25 for n in range(10)], abs=1e-9)


def test_a_cut_file_gives_the_frames_of_its_table(make_video: MakeVideo, tmp_path: Path) -> None:
    path = make_video("a.mkv", "mpeg4", frames=200)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    transcode_h264(path, tmp_path / "out.mp4")
    before, after = probe_video(path).frames, probe_video(tmp_path / "out.mp4").frames
    assert after.time_s == pytest.approx(before.time_s, abs=1e-9)


def test_odd_sides_grow_by_one_pixel(make_video: MakeVideo, tmp_path: Path) -> None:
    path = make_video("a.mkv", "mjpeg", frames=4, pix_fmt="yuvj444p", size=(193, 65))
    transcode_h264(path, tmp_path / "out.mp4")
    info = probe_video(tmp_path / "out.mp4")
    assert (info.width_px, info.height_px) == (194, 66)
    assert number_of(read_frame(tmp_path / "out.mp4", int(info.frames.pts[3]))) == 3


def test_rotation_is_applied(make_video: MakeVideo, tmp_path: Path) -> None:
    path = make_video("a.mp4", "libx264", frames=4, rotation_deg=90)
    transcode_h264(path, tmp_path / "out.mp4")
    info = probe_video(tmp_path / "out.mp4")
    assert (info.width_px, info.height_px) == (64, 192)


def test_the_index_precedes_the_data(make_video: MakeVideo, tmp_path: Path) -> None:
    transcode_h264(make_video("a.avi", "mpeg4"), tmp_path / "out.mp4")
    data = (tmp_path / "out.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")


def test_progress_counts_and_cancelling_leaves_no_file(
    make_video: MakeVideo, tmp_path: Path
) -> None:
    path = make_video("a.avi", "mpeg4")
    seen: list[tuple[int, int, str]] = []
    transcode_h264(path, tmp_path / "out.mp4", lambda *step: seen.append(step))
    assert seen[-1] == (60, 60, "transcoding")

    def cancel(done: int, total: int, phase: str) -> None:
        raise CancelledError("stopped")

    (tmp_path / "out.mp4").write_bytes(b"before")
    with pytest.raises(CancelledError):
        transcode_h264(path, tmp_path / "out.mp4", cancel)
    assert (tmp_path / "out.mp4").read_bytes() == b"before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.avi", "out.mp4"]


def test_a_file_with_only_sound_is_refused(audio_only: Path, tmp_path: Path) -> None:
    with pytest.raises(NoVideoStreamError):
        transcode_h264(audio_only, tmp_path / "out.mp4")


@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 9), (13, 40), (37, 37), (60, 69)])
@pytest.mark.parametrize(
    ("name", "codec", "extra"),
    [("a.mp4", "libx264", {"options": {"bf": "3"}}), ("a.avi", "mpeg4", {})],
)
def test_a_clip_has_exactly_its_frames_at_their_times(
    make_video: MakeVideo,
    tmp_path: Path,
    name: str,
    codec: str,
    extra: dict[str, object],
    first: int,
    last: int,
) -> None:
    path, out = make_video(name, codec, frames=70, **extra), tmp_path / "clip.mp4"
    before = probe_video(path).frames
    clip = write_clip(path, out, table=before, first=first, last=last)
    after = probe_video(out)
    count = last - first + 1
    assert (clip.frames, len(after.frames)) == (count, count)
    assert clip.offset_pts == int(before.pts[first])
    assert after.browser_playable
    times = before.time_s[first : last + 1] - before.time_s[first]
    assert after.frames.time_s == pytest.approx(times, abs=1e-9)
    source = [rgb for index, _, rgb in iter_frames(path) if first <= index <= last]
    for number, (index, _, rgb) in enumerate(iter_frames(out), first):
        assert number_of(rgb) == number
        wrong = np.abs(rgb.astype(int) - source[index].astype(int)).mean()
        assert wrong < 3.0  # of 255: h264 at a quality of 20


def test_uneven_time_stamps_of_a_clip_keep_their_intervals(
    make_video: MakeVideo, tmp_path: Path
) -> None:
    pts = [7, 11, 12, 90, 95, 180, 181]
    path = make_video("a.mkv", "libx264", frames=7, pts=pts, base=Fraction(1, 1_000))
    write_clip(path, tmp_path / "c.mp4", table=probe_video(path).frames, first=2, last=5)
    after = probe_video(tmp_path / "c.mp4").frames
    assert after.time_s == pytest.approx([0, 0.078, 0.083, 0.168], abs=1e-9)
    with av.open(str(tmp_path / "c.mp4")) as clip:
        comment = clip.metadata["comment"]
    assert "index 2 " in comment and "0.012000 s" in comment


@pytest.mark.parametrize(("first", "last"), [(-1, 3), (5, 4), (3, 10)])
def test_a_clip_of_missing_frames_is_refused(
    make_video: MakeVideo, tmp_path: Path, first: int, last: int
) -> None:
    path = make_video("a.mkv", "libx264", frames=10)
    table = probe_video(path).frames
    with pytest.raises(ValueError, match="the video has 10"):
        write_clip(path, tmp_path / "c.mp4", table=table, first=first, last=last)
    assert not (tmp_path / "c.mp4").exists()


def test_the_progress_of_a_clip_counts_its_frames(make_video: MakeVideo, tmp_path: Path) -> None:
    path, reported = make_video("a.mkv", "libx264", frames=30), []
    write_clip(
        path,
        tmp_path / "c.mp4",
        table=probe_video(path).frames,
        first=10,
        last=14,
        progress=lambda done, total, phase: reported.append((done, total)),
    )
    assert reported == [(n, 5) for n in range(1, 6)]

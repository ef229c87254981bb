"""Frame n is one picture: decoded in order, sought in any order, and in the rendition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from ml.imaging.videos.filmstrip import frames_near
from ml.imaging.videos.transcode import transcode_h264
from ml.imaging.videos.video import iter_frames, probe_video, read_frame
from ml.types import ImageU8
from tests.ml.imaging.conftest import number_of, numbered

pytestmark = pytest.mark.slow

MakeVideo = Callable[..., Path]
KEEP = {"g": "10", "sc_threshold": "0"}


def textured(n: int, size: tuple[int, int] = (192, 144)) -> ImageU8:
    """A picture that shows its number, with enough texture that packets are not tiny."""
    rgb = numbered(n, size)
    rng = np.random.default_rng(n)
    rgb[48:] = rng.integers(60, 200, (size[1] - 48, size[0], 1), np.uint8)
    return rgb


def without_cues(data: bytes) -> bytes:
    """A Matroska file whose index of key frames is overwritten by an empty (Void) element."""
    start = data.rindex(b"\x1c\x53\xbb\x6b")
    length = 9 - data[start + 4].bit_length()  # of the size, as EBML writes it
    first = start + 4 + length
    size = int.from_bytes(data[start + 4 : first], "big") & (2 ** (7 * length) - 1)
    assert size > 0 and first + size <= len(data)
    void = b"\xec\x01" + (first + size - start - 9).to_bytes(7, "big")
    return (data[:start] + void).ljust(first + size, b"\0") + data[first + size :]


@dataclass
class Recipe:
    """A sample: how parts are encoded, and how they are put together, and changed at the end."""

    name: str
    codec: str
    parts: list[range] = field(default_factory=lambda: [range(60)])
    container: str | None = None
    options: dict[str, str] = field(default_factory=lambda: dict(KEEP))
    muxing: dict[str, str] = field(default_factory=dict)
    stamps: Callable[[int], int] = lambda n: n
    base: Fraction = Fraction(1, 25)
    sound_s: float = 0.0
    change: Callable[[bytes], bytes] = bytes


def write(recipe: Recipe, folder: Path) -> Path:
    """The parts one after the other, as files are joined by copying their bytes."""
    joined = folder / recipe.name
    written = [encoded(recipe, folder / f"{n}-{recipe.name}", part) for n, part in
               enumerate(recipe.parts)]  # fmt: skip
    joined.write_bytes(recipe.change(b"".join(part.read_bytes() for part in written)))
    return joined


def encoded(recipe: Recipe, path: Path, numbers: range) -> Path:
    with av.open(str(path), "w", format=recipe.container, options=recipe.muxing) as target:
        stream = target.add_stream(recipe.codec, rate=25, options=recipe.options)
        stream.width, stream.height = 192, 144
        stream.pix_fmt = "yuvj420p" if recipe.codec == "mjpeg" else "yuv420p"
        stream.codec_context.thread_count = 1
        stream.time_base = stream.codec_context.time_base = recipe.base
        sound = target.add_stream("aac", rate=44_100) if recipe.sound_s else None
        for at, n in enumerate(numbers):
            frame = av.VideoFrame.from_ndarray(textured(n), format="rgb24")
            frame.pts, frame.time_base = recipe.stamps(at), recipe.base
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
        for at in range(round(recipe.sound_s * 44_100 / 1_024)):
            silence = av.AudioFrame.from_ndarray(np.zeros((1, 1_024), np.float32), "fltp", "mono")
            silence.rate, silence.pts = 44_100, at * 1_024
            target.mux(sound.encode(silence))
        if sound:
            target.mux(sound.encode(None))
    return path


RECIPES = [
    Recipe("b-frames.mp4", "libx264", options=KEEP | {"bf": "3"}),
    Recipe("fragmented.mp4", "libx264", muxing={"movflags": "frag_keyframe+empty_moov"}),
    Recipe("no-cues.mkv", "libx264", options=KEEP | {"bf": "2"}, change=without_cues),
    Recipe("no-cues-sound.mkv", "libx264", sound_s=6.0, change=without_cues),
    Recipe("late.mkv", "libx264", stamps=lambda n: 700 + n),
    Recipe("late.mp4", "libx264", stamps=lambda n: 60 + n, options=KEEP | {"bf": "2"}),
    Recipe("uneven.mkv", "libx264", stamps=lambda n: n * n + n // 7, base=Fraction(1, 1_000)),
    Recipe("vp8.webm", "libvpx", options={"g": "10", "auto-alt-ref": "1", "lag-in-frames": "10"}),
    Recipe("joined.webm", "libvpx-vp9", [range(30), range(30, 60)], options={"g": "10"}),
    Recipe("open.ts", "libx264", container="mpegts",
           options={"x264-params": "open-gop=1:keyint=12:bframes=3"}),
    Recipe("refresh.ts", "libx264", container="mpegts",
           options={"x264-params": "intra-refresh=1:keyint=20"}),
    Recipe("hevc.mkv", "libx265", options={"x265-params": "log-level=none:keyint=12:bframes=4"}),
    Recipe("h264.avi", "libx264", options=KEEP | {"bf": "2"}),
    Recipe("a.wmv", "wmv2"),
    Recipe("a.flv", "flv", options={"g": "10"}),
    Recipe("a.m2v", "mpeg2video", container="mpeg2video", options={"g": "10", "bf": "2"}),
    Recipe("three.vob", "mpeg2video", [range(30), range(30, 40), range(40, 75)],
           container="vob", options={"g": "12", "bf": "2"}),
    Recipe("joined.ts", "libx264", [range(40), range(40, 60), range(60, 100)],
           container="mpegts", options=KEEP | {"bf": "2"}),
    Recipe("wraps.ts", "libx264", container="mpegts", base=Fraction(1, 90_000),
           stamps=lambda n: 2**33 - 90_000 + 3_600 * n, options=KEEP | {"bf": "2"}),
    Recipe("jumps.ts", "libx264", container="mpegts", base=Fraction(1, 90_000),
           stamps=lambda n: 3_600 * n + (n > 30) * 90_000 * 4_000, options=KEEP),
]  # fmt: skip

SIMILAR = [
    Recipe("a.mp4", "libx264"),
    Recipe("sound.mp4", "libx264", sound_s=6.0),
    Recipe("sound.mkv", "libx264", sound_s=6.0),
    Recipe("live.webm", "libvpx-vp9", options={"g": "10"}, muxing={"live": "1"}),
    Recipe("open.mkv", "libx264", options={"x264-params": "open-gop=1:keyint=12:bframes=3"}),
    Recipe("refresh.mkv", "libx264", options={"x264-params": "intra-refresh=1:keyint=20"}),
    Recipe("asp.avi", "mpeg4", options={"g": "10", "bf": "2"}),
    Recipe("mjpeg.avi", "mjpeg"),
    Recipe("a.mpg", "mpeg2video", container="vob", options={"g": "10", "bf": "2"}),
    Recipe("mpeg1.mpg", "mpeg1video", container="mpeg", options={"g": "10", "bf": "2"}),
    Recipe("joined.mpg", "mpeg2video", [range(50), range(50, 100)], container="vob",
           options={"g": "12"}),
    Recipe("brief.ts", "mpeg2video", [range(n, n + 5) for n in range(0, 40, 5)],
           container="mpegts", options={"g": "5"}),
    Recipe("open-joined.ts", "libx264", [range(40), range(40, 80)], container="mpegts",
           options={"x264-params": "open-gop=1:keyint=12:bframes=3"}),
    Recipe("wraps.mpg", "mpeg2video", container="vob", stamps=lambda n: 2**33 // 3_600 - 25 + n,
           options={"g": "10", "bf": "2"}),
]  # fmt: skip
"""Recipes whose seeking is that of one above; `make endurance` tries them."""


@pytest.fixture(
    scope="module",
    params=[*RECIPES, *(pytest.param(item, marks=pytest.mark.endurance) for item in SIMILAR)],
    ids=lambda recipe: recipe.name,
)
def sample(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, int]:
    """A video, encoded once for the tests of this file, and how many pictures it has."""
    path = write(request.param, tmp_path_factory.mktemp("sample"))
    return path, sum(map(len, request.param.parts))


def test_a_frame_is_the_same_by_iteration_and_by_seeking(
    sample: tuple[Path, int], tmp_path: Path
) -> None:
    """Seeks the first frame, the last and twelve others; ``make endurance`` seeks each."""
    path, count = sample
    info = probe_video(path)
    table = info.frames
    in_order = list(iter_frames(path, table=table))
    assert [(index, number_of(rgb)) for index, _, rgb in in_order] == [(n, n) for n in range(count)]
    assert [pts for _, pts, _ in in_order] == table.pts.tolist()
    assert (np.diff(table.pts) > 0).all()
    assert not any("truncated" in warning or "cut" in warning for warning in info.warnings)
    for n in (count - 1, *np.random.default_rng(5).permutation(count)[:12], 0):
        assert np.array_equal(read_frame(path, int(table.pts[n]), table=table), in_order[n][2]), n
    rendition = transcode_h264(path, tmp_path / "web.mp4", table=table)
    web = probe_video(tmp_path / "web.mp4").frames
    assert [number_of(rgb) for _, _, rgb in iter_frames(tmp_path / "web.mp4")] == [*range(count)]
    shift_s = rendition.offset_pts * table.time_base_s
    assert web.time_s + shift_s == pytest.approx(table.time_s, abs=1e-6)


@pytest.mark.endurance
def test_every_frame_is_found_by_a_seek(sample: tuple[Path, int]) -> None:
    path, count = sample
    table = probe_video(path).frames
    in_order = [rgb for _, _, rgb in iter_frames(path, table=table)]
    for n in np.random.default_rng(5).permutation(count):
        assert np.array_equal(read_frame(path, int(table.pts[n]), table=table), in_order[n]), n


def test_thumbnails_show_the_requested_frames(sample: tuple[Path, int]) -> None:
    path, count = sample
    table = probe_video(path).frames
    wanted = [0, count // 3, count // 2, count - 1]
    exact = [(at, number_of(rgb)) for at, rgb in frames_near(path, table, wanted, is_long=False)]
    assert exact == [(n, n) for n in wanted]
    for at, rgb in frames_near(path, table, wanted, is_long=True):
        assert number_of(rgb) == at


def test_a_restarted_clock_continues(tmp_path: Path) -> None:
    recipe = Recipe("joined.mpg", "mpeg2video", [range(50), range(50, 100)], container="vob")
    info = probe_video(write(recipe, tmp_path))
    assert np.diff(info.frames.time_s) == pytest.approx([1 / 25] * 99)
    assert info.duration_s == pytest.approx(4)
    assert [warning for warning in info.warnings if "clock" in warning]
    assert not info.browser_playable


@pytest.mark.slow
def test_a_clock_that_wraps_or_jumps_continues(tmp_path: Path) -> None:
    for recipe in RECIPES + SIMILAR:
        if recipe.name in ("wraps.ts", "wraps.mpg", "jumps.ts"):
            times = probe_video(write(recipe, tmp_path)).frames.time_s
            assert np.diff(times) == pytest.approx([1 / 25] * 59)

"""The small pictures of a timeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from ml.imaging.videos.filmstrip import HEIGHT_PX, evenly, filmstrip, frames_near
from ml.imaging.videos.video import probe_video

FRAMES, GOP = 30, 10


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frame n is a plane of grey 8 n."""
    path = tmp_path_factory.mktemp("films") / "grey.mp4"
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=25, options={"sc_threshold": "0"})
        stream.width, stream.height, stream.pix_fmt, stream.gop_size = 160, 120, "yuv420p", GOP
        for index in range(FRAMES):
            image = np.full((120, 160, 3), 8 * index, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))
    return path


def test_each_thumbnail_is_the_frame_at_its_time(video: Path) -> None:
    table = probe_video(video).frames
    strip = filmstrip(video, table, evenly(table, 5), is_long=False)
    assert strip.shape == (HEIGHT_PX, 5 * 120, 3)
    greys = [int(strip[45, 120 * i + 60].mean()) for i in range(5)]
    assert greys == pytest.approx([8 * at for at in (0, 7, 14, 22, 29)], abs=5)


def test_thumbnails_of_a_long_video_are_the_preceding_key_frames(video: Path) -> None:
    table = probe_video(video).frames
    strip = filmstrip(video, table, evenly(table, 5), is_long=True)
    greys = [int(strip[45, 120 * i + 60].mean()) for i in range(5)]
    assert greys == pytest.approx([8 * at for at in (0, 0, 10, 20, 20)], abs=5)


def test_an_undecodable_frame_repeats_the_last(video: Path) -> None:
    table = probe_video(video).frames
    strip = filmstrip(video, table, [0, 5, len(table) + 9_999], is_long=False)
    assert (strip[:, 120:240] == strip[:, 240:]).all()


def test_each_frame_has_its_index(video: Path) -> None:
    table, indices = probe_video(video).frames, [0, 1, 7, 13, 29]
    assert [at for at, _ in frames_near(video, table, indices, is_long=False)] == indices
    assert [at for at, _ in frames_near(video, table, indices, is_long=True)] == [0, 0, 0, 10, 20]

"""Videos: notes and dates go, packets stay where they are."""

from __future__ import annotations

from pathlib import Path

import av
import pytest

from tests.ml.imaging.conftest import MakeVideo, numbered
from tests.ml.imaging.deidentify.support import SECRET, clean


def _packets(path: Path) -> list[tuple[int | None, bytes]]:
    with av.open(str(path)) as container:
        return [(one.pts, bytes(one)) for one in container.demux(video=0) if one.size]


@pytest.mark.parametrize("name", ["v.mp4", "v.mov", "v.avi"])
def test_notes_and_dates_go_and_frames_stay(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with av.open(str(path), "w") as container:
        container.metadata.update(
            {"title": SECRET, "artist": SECRET, "creation_time": "2020-01-01T00:00:00Z"}
        )
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 192, 64, "yuv420p"
        for n in range(3):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(numbered(n), format="rgb24")))
        container.mux(stream.encode(None))
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert cleaned.removed
    assert SECRET.encode() not in made.read_bytes()
    assert made.stat().st_size == path.stat().st_size
    assert _packets(made) == _packets(path)
    with av.open(str(made)) as container:
        assert not {"title", "artist", "creation_time"} & container.metadata.keys()
    assert clean(made, tmp_path / "again")[0] is None


def test_a_video_that_only_names_its_program_is_not_copied(
    tmp_path: Path, make_video: MakeVideo
) -> None:
    path = make_video("v.mp4", "mpeg4", frames=3)
    assert clean(path, tmp_path / "out")[0] is None


def test_what_cannot_be_taken_out_is_said(tmp_path: Path, make_video: MakeVideo) -> None:
    made, cleaned = clean(make_video("v.mkv", "mpeg4", frames=3), tmp_path / "out")
    assert made is None
    assert cleaned.left == ["titles and dates inside the matroska container"]

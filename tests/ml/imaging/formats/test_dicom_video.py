"""DICOM videos: the stream comes out as it was coded, and no name in it or around it stays."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import av
import pytest
from pydicom import dcmread

from ml.errors import BadInputError, CorruptFileError, UnsupportedFormatError
from ml.imaging.formats.dicom_video import unwrap_video
from ml.imaging.formats.sniff import sniff
from ml.imaging.ingest import UNWRAPPED_NAME, inspect_video
from ml.imaging.sandbox.parent import run_limited
from ml.imaging.videos.frame_table_file import load_frame_table
from ml.imaging.videos.video import read_frame
from ml.types import DisplayGeometry
from tests.ml.imaging.conftest import number_of
from tests.ml.imaging.deidentification.support import (
    AVC,
    AVC_FRAGMENTABLE,
    HEVC,
    MPEG2,
    SECRET,
    clean,
    write_dicom_video,
)

MakeVideo = Callable[..., Path]
KINDS = [
    pytest.param("mpeg2video", "vob", MPEG2, 1, id="mpeg2-program-stream"),
    pytest.param("mpeg2video", "mpeg2video", MPEG2, 1, id="mpeg2-bare"),
    pytest.param("libx264", "mp4", AVC, 1, id="avc-mp4"),
    pytest.param("libx264", "mpegts", AVC_FRAGMENTABLE, 3, id="avc-transport-stream"),
    pytest.param("libx265", "mp4", HEVC, 1, id="hevc-mp4"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("codec", "container", "syntax", "fragments"), KINDS)
def test_a_dicom_video_is_unwrapped_in_the_confined_child(
    make_video: MakeVideo, tmp_path: Path, codec: str, container: str, syntax: str, fragments: int
) -> None:
    video = make_video("v", codec, frames=20, container=container)
    path = write_dicom_video(tmp_path / "a.dcm", video, syntax, fragments=fragments)
    assert sniff(path) == "video"
    out = tmp_path / "out"
    out.mkdir()
    limited = run_limited(
        "ml.imaging.ingest:inspect_video",
        {"path": str(path), "out_dir": str(out)},
        reads=(path,),
        writes=(out,),
    )
    assert (limited["frame_count"], DisplayGeometry(**limited["geometry"]).size) == (20, (192, 64))
    assert limited["browser_playable"] is (codec == "libx264" and container == "mp4")
    unwrapped = out / limited["pixels"]
    assert unwrapped.read_bytes().rstrip(b"\0") == video.read_bytes().rstrip(b"\0")
    times = load_frame_table(out / limited["frames"]).pts
    assert number_of(read_frame(unwrapped, int(times[7]))) == 7


@pytest.mark.parametrize(("syntax", "fragments"), [(AVC, 1), (AVC_FRAGMENTABLE, 4)])
def test_names_around_and_in_the_stream_are_removed(
    tmp_path: Path, syntax: str, fragments: int
) -> None:
    video = tmp_path / "v.mp4"
    with av.open(str(video), "w") as container:
        container.metadata["title"] = SECRET
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for _ in range(5):
            container.mux(stream.encode(av.VideoFrame(64, 48, "yuv420p")))
        container.mux(stream.encode(None))
    assert SECRET.encode() in video.read_bytes()
    path = write_dicom_video(tmp_path / "a.dcm", video, syntax, fragments=fragments)
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert {"PatientName", "private attributes", "©nam"} <= set(cleaned.removed)
    assert SECRET.encode() not in made.read_bytes()
    assert [item.name for item in made.parent.iterdir()] == ["clean"]
    data = dcmread(made)
    assert (data.PatientIdentityRemoved, data.CineRate, data.Modality) == ("YES", 25, "ES")
    inspection = inspect_video(path=str(made), out_dir=str(made.parent))
    assert inspection["frame_count"] == 5
    with av.open(str(made.parent / UNWRAPPED_NAME)) as container:
        assert "title" not in container.metadata
    cleaned_again = clean(made.rename(tmp_path / "again.dcm"), tmp_path / "again")[1]
    assert "©nam" not in cleaned_again.removed


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9, 0.97])
def test_a_cut_object_is_refused(make_video: MakeVideo, tmp_path: Path, share: float) -> None:
    path = write_dicom_video(tmp_path / "a.dcm", make_video("v.mp4", "libx264", frames=5), AVC)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(BadInputError):
        inspect_video(path=str(path), out_dir=str(tmp_path))
    with pytest.raises(BadInputError):
        clean(path, tmp_path / "out")


def test_a_stream_without_times_is_refused_by_name(make_video: MakeVideo, tmp_path: Path) -> None:
    bare = make_video("v", "libx264", frames=5, container="h264")
    path = write_dicom_video(tmp_path / "bare.dcm", bare, AVC)
    with pytest.raises(UnsupportedFormatError, match=r"AVC or HEVC.*MP4"):
        unwrap_video(path, tmp_path / "out")
    (tmp_path / "text").write_bytes(b"no video at all, only a text of some length")
    path = write_dicom_video(tmp_path / "text.dcm", tmp_path / "text", AVC)
    with pytest.raises(CorruptFileError, match="opened"):
        inspect_video(path=str(path), out_dir=str(tmp_path))


def test_a_length_that_leads_out_of_the_file_is_refused(
    make_video: MakeVideo, tmp_path: Path
) -> None:
    path = write_dicom_video(tmp_path / "a.dcm", make_video("v.mp4", "libx264", frames=5), AVC)
    data = path.read_bytes()
    at = data.rindex(b"\xfe\xff\x00\xe0")
    for size in (2**32 - 1, 2**31, 0):
        path.write_bytes(data[: at + 4] + struct.pack("<I", size) + data[at + 8 :])
        with pytest.raises(CorruptFileError, match="DICOM video"):
            unwrap_video(path, tmp_path / "out")

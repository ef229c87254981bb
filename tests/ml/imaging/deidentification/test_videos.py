"""Videos: notes and dates go, packets stay where they are."""

from __future__ import annotations

import struct
from pathlib import Path

import av
import pytest

from ml.errors import CorruptFileError
from tests.ml.imaging.conftest import MakeVideo, numbered
from tests.ml.imaging.deidentification.support import SECRET, clean


def _packets(path: Path) -> list[tuple[int | None, bytes]]:
    with av.open(str(path)) as container:
        return [(packet.pts, bytes(packet)) for packet in container.demux(video=0) if packet.size]


@pytest.mark.parametrize("name", ["v.mp4", "v.mov", "v.avi"])
def test_notes_and_dates_of_a_video_are_removed_and_frames_unchanged(
    tmp_path: Path, name: str
) -> None:
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


def test_a_video_with_only_its_encoder_name_is_not_copied(
    tmp_path: Path, make_video: MakeVideo
) -> None:
    path = make_video("v.mp4", "mpeg4", frames=3)
    assert clean(path, tmp_path / "out")[0] is None


def test_data_that_cannot_be_removed_is_reported(tmp_path: Path, make_video: MakeVideo) -> None:
    made, cleaned = clean(make_video("v.mkv", "mpeg4", frames=3), tmp_path / "out")
    assert made is None
    assert cleaned.left == ["titles and dates inside the matroska container"]


def _box(kind: bytes, body: bytes, *, size: int | None = None) -> bytes:
    return struct.pack(">I4s", 8 + len(body) if size is None else size, kind) + body


def _chunk(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


_NAME = SECRET.encode() + b" 1950"
_TITLE = _box(b"udta", _box(b"\xa9nam", struct.pack(">HH", len(_NAME), 0) + _NAME))


def _inside(path: Path, holder: bytes, more: bytes) -> None:
    """Put boxes at the end of the first of a kind, where ``moov`` comes last."""
    data = bytearray(path.read_bytes())
    at = data.rindex(holder) - 4
    end = at + struct.unpack_from(">I", data, at)[0]
    for outer in (b"moov", b"trak", b"mdia", b"minf", b"stbl"):
        place = data.rindex(outer) - 4
        (size,) = struct.unpack_from(">I", data, place)
        if place <= at and place + size >= end:
            struct.pack_into(">I", data, place, size + len(more))
    path.write_bytes(data[:end] + more + data[end:])


_HANDLER = _box(b"hdlr", bytes(8) + b"vide" + bytes(12) + _NAME + b"\0")
_SHORT_TIMES = _box(b"mvhd", b"\2\0\0\0" + b"DoeJane!" + bytes(90))


@pytest.mark.parametrize(
    ("holder", "more", "fact"),
    [
        (b"moov", _TITLE, "\xa9nam"),
        (b"trak", _TITLE, "\xa9nam"),
        (b"stbl", _TITLE, "\xa9nam"),
        (b"moov", _box(b"NAME", _NAME), "NAME"),
        (b"trak", _box(b"\0\1\0\2", _NAME), "unnamed data"),
        (b"moov", _box(b"free", _NAME), "free space"),
        (b"stbl", _box(b"skip", _NAME), "free space"),
        (b"mdia", _HANDLER, "name of a track"),
        (b"moov", b"DoeJane", "data between boxes"),
        (b"moov", _box(b"udta", _box(b"\xa9too", b"x") + b"\0\0\0\3" + _NAME), "udta"),
        (b"moov", _box(b"udta", _box(b"\xa9too", b"x") + _box(b"free", _NAME)), "free"),
        (b"moov", _box(b"meta", bytes(4) + _HANDLER), "hdlr"),
        (b"moov", _SHORT_TIMES, "creation time"),
        (b"", _TITLE, "\xa9nam"),
        (b"", _box(b"NAME", _NAME), "NAME"),
        (b"", _box(b"NAME", _NAME, size=999_999), "NAME"),
        (b"", _box(b"NAME", _NAME, size=0), "NAME"),
        (b"", b"DoeJane", "data between boxes"),
        (b"", b"DoeJane" + bytes(40), "unnamed data"),
    ],
)
def test_names_are_removed_from_every_box_of_a_video(
    tmp_path: Path, make_video: MakeVideo, holder: bytes, more: bytes, fact: str
) -> None:
    path = make_video("v.mp4", "mpeg4", frames=3)
    before = _packets(path)
    if holder:
        _inside(path, holder, more)
    else:
        path.write_bytes(path.read_bytes() + more)
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert (cleaned.removed, cleaned.left) == ([fact], [])
    assert b"Doe" not in made.read_bytes()
    assert made.stat().st_size == path.stat().st_size
    assert _packets(made) == before
    assert clean(made, tmp_path / "again")[0] is None


@pytest.mark.parametrize("size", [2, 7, 1, 1_000_000])
@pytest.mark.parametrize("holder", [b"moov", b"trak", b"stbl"])
def test_a_box_of_invalid_size_is_refused_by_name(
    tmp_path: Path, make_video: MakeVideo, holder: bytes, size: int
) -> None:
    path = make_video("v.mp4", "mpeg4", frames=3)
    _inside(path, holder, _box(b"load", b"\0" * 16, size=size) + _TITLE)
    with pytest.raises(CorruptFileError, match="box load"):
        clean(path, tmp_path / "out")


def test_more_boxes_than_any_video_has_are_refused(tmp_path: Path, make_video: MakeVideo) -> None:
    path = make_video("v.mp4", "mpeg4", frames=3)
    path.write_bytes(path.read_bytes() + 100_001 * _box(b"wide", b"") + _TITLE)
    with pytest.raises(CorruptFileError, match="100,000"):
        clean(path, tmp_path / "out")


def test_times_in_a_header_too_short_for_them_are_refused(
    tmp_path: Path, make_video: MakeVideo
) -> None:
    path = make_video("v.mp4", "mpeg4", frames=3)
    _inside(path, b"moov", _box(b"mvhd", bytes(4)) + _TITLE)
    with pytest.raises(CorruptFileError, match="box mvhd"):
        clean(path, tmp_path / "out")


def test_a_video_that_was_cut_inside_its_frames_is_cleaned(
    tmp_path: Path, make_video: MakeVideo
) -> None:
    path = make_video("v.mp4", "mpeg4", frames=60, muxing={"movflags": "faststart"})
    data = path.read_bytes()
    at = data.index(b"moov") - 4
    assert at < data.index(b"mdat")
    path.write_bytes(data[:at] + _TITLE + data[at:-500])
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert cleaned.removed == ["\xa9nam"]
    assert SECRET.encode() not in made.read_bytes()


def test_possible_remains_in_a_packed_header_are_reported(
    tmp_path: Path, make_video: MakeVideo
) -> None:
    path = make_video("v.mov", "mpeg4", frames=3)
    _inside(path, b"moov", _box(b"cmov", b"packed"))
    made, cleaned = clean(path, tmp_path / "out")
    assert made is None
    assert cleaned.left == ["titles and dates inside the packed header of the mov container"]


_INFO = _chunk(b"LIST", b"INFO" + _chunk(b"INAM", _NAME))


@pytest.mark.parametrize(
    ("inside", "more", "fact"),
    [
        (b"hdrl", _INFO, "INAM"),
        (b"strl", _INFO, "INAM"),
        (b"strl", _chunk(b"strn", _NAME), "strn"),
        (b"hdrl", _chunk(b"NAME", _NAME), "NAME"),
        (b"hdrl", _chunk(b"LIST", b"NAME" + _NAME), "LIST"),
        (b"", _INFO, "INAM"),
        (b"", _chunk(b"_PMX", _NAME), "_PMX"),
        (b"", _chunk(b"JUNK", _NAME), "free space"),
        (b"", _chunk(b"RIFF", b"AVIX" + _INFO), "INAM"),
        (b"", b"NAME\xff\xff\xff\x7f" + _NAME, "NAME"),
        (b"", b"DoeJane", "data between boxes"),
        (b"", _chunk(b"NAME", b"") + _INFO, "INAM"),
        (b"", _chunk(b"LIST", b"INFO" + _chunk(b"ISFT", b"x") + b"ab"), "LIST"),
    ],
)
def test_names_are_removed_from_every_chunk_of_a_video(
    tmp_path: Path, make_video: MakeVideo, inside: bytes, more: bytes, fact: str
) -> None:
    path = make_video("v.avi", "mpeg4", frames=3)
    first, _ = clean(path, tmp_path / "first")  # junk of the program that wrote it
    data = bytearray((first or path).read_bytes())
    before = _packets(path)
    if inside:
        at = data.index(inside) - 8
        end = at + 8 + struct.unpack_from("<I", data, at + 4)[0]
        for place in {data.index(name) - 4 for name in (inside, b"hdrl")}:
            struct.pack_into(
                "<I", data, place, struct.unpack_from("<I", data, place)[0] + len(more)
            )
        data[end:end] = more
    else:
        data += more
    path.write_bytes(data)
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert cleaned.removed == [fact]
    assert b"Doe" not in made.read_bytes()
    assert made.stat().st_size == path.stat().st_size
    assert [body for _, body in _packets(made)] == [body for _, body in before]
    assert clean(made, tmp_path / "again")[0] is None


def test_a_header_of_an_avi_that_ends_beyond_its_list_is_refused(
    tmp_path: Path, make_video: MakeVideo
) -> None:
    path = make_video("v.avi", "mpeg4", frames=3)
    data = bytearray(path.read_bytes() + _INFO)
    struct.pack_into("<I", data, data.index(b"strf") + 4, 2**30)
    path.write_bytes(data)
    with pytest.raises(CorruptFileError, match="strf"):
        clean(path, tmp_path / "out")

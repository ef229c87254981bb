"""Stills: pixels, profile, resolution and orientation stay; other metadata is removed."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from ml.errors import CorruptFileError
from ml.imaging.deidentification.result import DeidentificationResult
from ml.imaging.deidentification.stills import blank_notes, clean_jpeg
from ml.imaging.slides.slide import open_slide
from tests.ml.imaging.deidentification.support import SECRET, clean


def _exif() -> Image.Exif:
    exif = Image.Exif()
    exif[274], exif[315], exif[306] = 6, SECRET, "2020:01:01 00:00:00"
    exif.get_ifd(34853)[1] = "N"
    return exif


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp"])
def test_a_still_retains_only_its_pixels_and_its_orientation(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    pixels = np.random.default_rng(3).integers(0, 255, (30, 40, 3), dtype=np.uint8)
    notes = PngImagePlugin.PngInfo()
    notes.add_text("Author", SECRET)
    more = {"comment": SECRET.encode()} if name == "a.jpg" else {"pnginfo": notes}
    options = {} if name == "a.webp" else more
    Image.fromarray(pixels).save(path, exif=_exif(), dpi=(300, 300), **options)
    path.write_bytes(path.read_bytes() + (b"" if name == "a.webp" else SECRET.encode()))
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert {"Exif", "GPS position"} <= set(cleaned.removed)
    assert SECRET.encode() not in made.read_bytes()
    before, after = Image.open(path), Image.open(made)
    assert after.tobytes() == before.tobytes()
    assert dict(after.getexif()) == {274: 6}
    assert after.info.get("dpi") == before.info.get("dpi")
    with open_slide(path) as shown, open_slide(made) as clean_shown:
        assert (shown.info.width_px, shown.info.mpp_x) == (
            clean_shown.info.width_px,
            clean_shown.info.mpp_x,
        )
    assert clean(made, tmp_path / "again")[0] is None


def test_a_progressive_jpeg_is_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "p.jpg"
    pixels = np.random.default_rng(4).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, progressive=True, comment=SECRET.encode())
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert cleaned.removed == ["JPEG comment"]
    assert Image.open(made).tobytes() == Image.open(path).tobytes()


def _values(kind: int, tag: int, value: bytes, at: int) -> bytes:
    """An entry of a little-endian directory whose value is elsewhere."""
    size = {2: 1, 3: 2, 5: 8}[kind]
    return struct.pack("<HHII", tag, kind, len(value) // size, at)


def _block(more: bytes, *, second: bytes = b"") -> bytes:
    """EXIF whose first directory holds only the orientation 6; another may follow, and bytes."""
    head = b"II*\0" + struct.pack("<IHHHIHH", 8, 1, 274, 3, 1, 6, 0)
    return head + struct.pack("<I", 26 if second else 0) + second + more


_NAME = SECRET.encode() + b" 1950\0"
_SECOND = struct.pack("<H", 1) + _values(2, 270, _NAME, 26 + 18) + bytes(4)
_MISUSED = b"II*\0" + struct.pack("<IHHHIHH", 8, 2, 274, 3, 1, 6, 0)
_MISUSED += _values(2, 282, _NAME, 38) + bytes(4) + _NAME
_LETTERS = b"II*\0" + struct.pack("<IHHHIHH", 8, 2, 274, 3, 1, 6, 0)
_LETTERS += _values(5, 282, b"DoeJaneX", 38) + bytes(4) + b"DoeJaneX"


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp"])
@pytest.mark.parametrize(
    "block",
    [_block(_NAME, second=_SECOND), _block(_NAME), _MISUSED, _LETTERS],
    ids=["second-directory", "bytes-behind", "text-as-resolution", "letters-as-resolution"],
)
def test_only_the_orientation_of_an_exif_block_is_copied(
    tmp_path: Path, name: str, block: bytes
) -> None:
    path = tmp_path / name
    pixels = np.random.default_rng(3).integers(0, 255, (30, 40, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, exif=b"Exif\0\0" + block)
    assert SECRET.encode() in path.read_bytes()
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert cleaned.removed == ["Exif"]
    assert SECRET.encode() not in made.read_bytes()
    before, after = Image.open(path), Image.open(made)
    assert after.tobytes() == before.tobytes()
    assert after.getexif()[274] == 6
    assert after.getexif().keys() <= {274, 282}
    assert clean(made, tmp_path / "again")[0] is None


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp"])
def test_orientation_and_resolution_are_not_identifying(tmp_path: Path, name: str) -> None:
    path, exif = tmp_path / name, Image.Exif()
    exif[274], exif[282], exif[283], exif[296] = 8, 118.11, 118.11, 3
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(path, exif=exif)
    assert clean(path, tmp_path / "out")[0] is None
    exif[315] = SECRET
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(path, exif=exif)
    made, _ = clean(path, tmp_path / "out")
    assert made is not None
    assert dict(Image.open(made).getexif()) == {274: 8, 282: 118.11, 283: 118.11, 296: 3}


def test_a_resolution_that_rounds_to_zero_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    block = b"II*\0" + struct.pack("<IHHHIHH", 8, 2, 274, 3, 1, 6, 0)
    block += _values(5, 282, struct.pack("<II", 1, 10_000), 38) + bytes(4)
    block += struct.pack("<II", 1, 10_000)
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(path, exif=b"Exif\0\0" + block)
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert cleaned.removed == ["Exif"]
    assert Image.open(made).getexif().keys() == {274}
    assert clean(made, tmp_path / "again")[0] is None


def _riff(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def _with_chunks(path: Path, more: bytes, behind: bytes = b"") -> None:
    data = path.read_bytes() + more
    path.write_bytes(data[:4] + struct.pack("<I", len(data) - 8) + data[8:] + behind)


@pytest.mark.parametrize(
    ("more", "behind", "fact"),
    [
        (_riff(b"NAME", _NAME), b"", "WebP chunk NAME"),
        (_riff(b"\0\1\2\3", _NAME), b"", "WebP chunk"),
        (_riff(b"XMP ", _NAME), b"", "XMP"),
        (b"", _NAME, "data after the image"),
        (b"", SECRET[:6].encode(), "data after the image"),
        (b"", _riff(b"VP8X", _NAME), "data after the image"),
    ],
)
def test_only_known_chunks_of_a_webp_are_copied(
    tmp_path: Path, more: bytes, behind: bytes, fact: str
) -> None:
    path = tmp_path / "a.webp"
    pixels = np.random.default_rng(3).integers(0, 255, (30, 40, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, lossless=True)
    _with_chunks(path, more, behind)
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert cleaned.removed == [fact]
    assert SECRET[:6].encode() not in made.read_bytes()
    assert (np.asarray(Image.open(made)) == pixels).all()
    assert clean(made, tmp_path / "again")[0] is None


def test_a_moving_webp_has_no_notes_inside_its_frames(tmp_path: Path) -> None:
    path = tmp_path / "a.webp"
    frames = [Image.new("RGB", (16, 16), (shade, 9, 9)) for shade in (0, 90, 200)]
    frames[0].save(path, save_all=True, append_images=frames[1:], lossless=True)
    data = path.read_bytes()
    at = data.index(b"ANMF")
    (size,) = struct.unpack_from("<I", data, at + 4)
    frame = data[at + 8 : at + 8 + size] + _riff(b"NAME", _NAME)
    path.write_bytes(data[:at] + _riff(b"ANMF", frame) + data[at + 8 + size + size % 2 :])
    _with_chunks(path, b"")
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert cleaned.removed == ["WebP chunk NAME"]
    assert SECRET.encode() not in made.read_bytes()
    assert made.read_bytes() == data
    assert getattr(Image.open(made), "n_frames", 1) == 3


def test_a_cut_webp_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.webp"
    Image.new("RGB", (64, 64)).save(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorruptFileError, match="truncated"):
        clean(path, tmp_path / "out")


def _segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


_JFIF = b"JFIF\0\1\1\1\0\x48\0\x48"


@pytest.mark.parametrize(
    ("segment", "fact"),
    [
        (_segment(0xE0, _JFIF + b"\2\1" + SECRET[:6].encode()), "thumbnail"),
        (_segment(0xE0, b"JFXX\0\x13\1\1" + _NAME), "JPEG note"),
        (_segment(0xE0, _NAME), "JPEG note"),
        (_segment(0xEE, b"Adobe\0\x64\0\0\0\0\1" + _NAME), "JPEG note"),
        (_segment(0xE5, _NAME), "JPEG note"),
        (_segment(0xFE, _NAME), "JPEG comment"),
        (_segment(0xF3, _NAME), "JPEG note"),
        (_segment(0x05, _NAME), "JPEG note"),
        (_segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + _NAME), "XMP"),
    ],
)
@pytest.mark.parametrize("in_place", [False, True])
def test_only_known_segments_of_a_jpeg_are_copied(
    tmp_path: Path, segment: bytes, fact: str, in_place: bool
) -> None:
    path, cleaned = tmp_path / "a.jpg", DeidentificationResult()
    pixels = np.random.default_rng(3).integers(0, 255, (30, 40, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, dpi=(72, 72))
    plain = path.read_bytes()
    path.write_bytes(plain[:2] + segment + plain[20:])
    made, again = tmp_path / "made.jpg", DeidentificationResult()
    if in_place:
        made.write_bytes(path.read_bytes())
        blank_notes(made, cleaned)
        blank_notes(made, again)
        assert made.stat().st_size == path.stat().st_size
    else:
        clean_jpeg(path, made, cleaned)
        clean_jpeg(made, tmp_path / "again.jpg", again)
    assert (cleaned.removed, again.removed) == ([fact], [])
    assert SECRET[:6].encode() not in made.read_bytes()
    if segment[1] >= 0xE0 and segment[1] != 0xF3:
        same = Image.open(made).convert("RGB").tobytes()
        assert same == Image.open(path).convert("RGB").tobytes()


@pytest.mark.parametrize(
    "kind", [b"pHYs", b"gAMA", b"tRNS", b"sRGB", b"eXIf", b"prVt", b"sPLT", b"zTXt", b"iTXt"]
)
def test_chunks_of_a_png_contain_no_added_text(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "a.png"
    pixels = np.random.default_rng(3).integers(0, 255, (30, 40, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    plain, body = path.read_bytes(), 120 * _NAME
    chunk = struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    path.write_bytes(plain[:33] + chunk + plain[33:])
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert len(cleaned.removed) == 1
    assert made.read_bytes() == plain

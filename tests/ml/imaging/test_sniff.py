"""Kinds by bytes, whatever the name says."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from ml.errors import CorruptFileError, UnsupportedFormatError
from ml.imaging.sniff import sniff


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP", "TIFF"])
def test_stills_are_known_under_any_name(tmp_path: Path, kind: str) -> None:
    out = io.BytesIO()
    Image.new("RGB", (20, 10)).save(out, kind)
    (tmp_path / "x.mp4").write_bytes(out.getvalue())
    assert sniff(tmp_path / "x.mp4") == "still"


def test_slides_are_known_under_any_name(pyramid: Path, tmp_path: Path) -> None:
    pyramid.rename(tmp_path / "x.txt")
    assert sniff(tmp_path / "x.txt") == "slide"


@pytest.mark.parametrize(
    ("container", "codec"),
    [
        ("mp4", "libx264"), ("mov", "libx264"), ("webm", "libvpx-vp9"), ("matroska", "libx264"),
        ("avi", "mpeg4"), ("asf", "wmv2"), ("vob", "mpeg2video"), ("mpegts", "libx264"),
        ("flv", "flv"),
    ],
)  # fmt: skip
def test_videos_are_known_under_any_name(
    make_video: Callable[..., Path], container: str, codec: str
) -> None:
    assert sniff(make_video("x.svs", codec, frames=8, container=container)) == "video"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", r"empty \(0 bytes\)"),
        (b"hello, pathologist\n", "a text file"),
        ("grüße\n".encode() * 100, "a text file"),
        (b"<!DOCTYPE html><html></html>", "a web page"),
        (b"PK\x03\x04" + bytes(40), "a ZIP archive; unpack it"),
        (b"\x1f\x8b\x08" + bytes(40), "a gzip archive"),
        (b"Rar!\x1a\x07" + bytes(40), "a RAR archive"),
        (b"%PDF-1.7\n", "a PDF document"),
        (b"GIF89a" + bytes(40), "a GIF image; save it as PNG"),
        (b"\0\0\0\x18ftypheic" + bytes(40), "a HEIF or AVIF image"),
        (b"\x7fELF" + bytes(40), "a program"),
        (bytes(128) + b"DICM" + bytes(40), "a DICOM object that is no whole-slide image"),
        (b"\x01\x02\x03\x04" + bytes(40), "of an unknown kind .it begins with 01 02 03 04"),
    ],
)
def test_the_rest_is_named_and_refused(tmp_path: Path, content: bytes, found: str) -> None:
    (tmp_path / "x.svs").write_bytes(content)
    with pytest.raises(UnsupportedFormatError, match=found) as caught:
        sniff(tmp_path / "x.svs")
    assert "expected a whole-slide image" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("length", [5, 9, 60])
def test_a_tiff_cut_in_its_header_or_directory_is_refused(
    giant_tiff: Path, tmp_path: Path, length: int
) -> None:
    (tmp_path / "cut.tif").write_bytes(giant_tiff.read_bytes()[:length])
    with pytest.raises(CorruptFileError, match="cut"):
        sniff(tmp_path / "cut.tif")

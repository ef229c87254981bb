"""Kinds by bytes, whatever the name says."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import openslide
import pytest
from PIL import Image

from ml.errors import BadInputError, CorruptFileError, UnsupportedFormatError
from ml.imaging.formats.sniff import sniff
from ml.imaging.ingest import inspect_slide
from ml.imaging.slides.slide import open_slide
from ml.imaging.videos.video import probe_video
from ml.types import ImageU8


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP", "TIFF", "JPEG2000"])
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
        (b"\x1f\x8b\x08" + bytes(40), "a gzip archive"),
        (b"Rar!\x1a\x07" + bytes(40), "a RAR archive"),
        (b"%PDF-1.7\n", "a PDF document"),
        (b"GIF89a" + bytes(40), "a GIF image; save it as PNG"),
        (b"\0\0\0\x18ftypheic" + bytes(40), "a HEIF or AVIF image"),
        (b"\x7fELF" + bytes(40), "a program"),
        (
            bytes(128) + b"DICM" + bytes(40),
            "a DICOM object that is neither a whole-slide image nor a video",
        ),
        (b"\x01\x02\x03\x04" + bytes(40), "of an unknown kind .it begins with 01 02 03 04"),
    ],
)
def test_unsupported_files_are_refused_by_name(tmp_path: Path, content: bytes, found: str) -> None:
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
    with pytest.raises(CorruptFileError, match="truncated"):
        sniff(tmp_path / "cut.tif")


@pytest.mark.parametrize("prefix", ["", "Uncompressed "])
def test_a_text_that_names_other_files_is_no_slide(
    tmp_path: Path, gradient: ImageU8, prefix: str
) -> None:
    """OpenSlide follows the names in such a file to any path."""
    (tmp_path / "theirs").mkdir()
    Image.fromarray(gradient).save(tmp_path / "theirs" / "secret.jpg")
    (tmp_path / "mine").mkdir()
    index = tmp_path / "mine" / "a-file-of-a-user"
    index.write_text(
        f"[{prefix}Virtual Microscope Specimen]\nNoLayers=1\nNoJpegColumns=1\nNoJpegRows=1\n"
        "ImageFile=../theirs/secret.jpg\nMapFile=../theirs/secret.jpg\n"
    )
    assert openslide.OpenSlide.detect_format(str(index)) == "hamamatsu"  # it would
    with pytest.raises(UnsupportedFormatError, match="VMS or VMU"):
        sniff(index)
    with pytest.raises(UnsupportedFormatError, match="VMS or VMU"):
        open_slide(index)
    with pytest.raises(UnsupportedFormatError, match="VMS or VMU"):
        inspect_slide(path=str(index), out_dir=str(tmp_path))


def test_a_playlist_is_never_a_video(tmp_path: Path) -> None:
    """FFmpeg guesses by the whole head; only the container the first bytes name may open it."""
    (tmp_path / "theirs.ts").write_bytes(b"secret" * 100)
    lists = (
        b"#EXTM3U\n#EXTINF:1,\n" + str(tmp_path / "theirs.ts").encode(),
        b"ffconcat version 1.0\nfile theirs.ts\n",
    )
    for content in (*lists, *(b"\0\0\0\x08free" + content for content in lists)):
        (tmp_path / "list").write_bytes(content)
        with pytest.raises(BadInputError):
            probe_video(tmp_path / "list")


def test_a_dicom_object_is_a_slide_only_by_its_class(tmp_path: Path) -> None:
    meta = b"\2\0\2\0UI\x1e\0" + b"1.2.840.10008.5.1.4.1.1.77.1.6"
    (tmp_path / "x").write_bytes(bytes(128) + b"DICM" + meta + bytes(40))
    assert sniff(tmp_path / "x") == "slide"

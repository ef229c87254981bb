"""JPEG 2000 stills: read upright and in their depth, refused where cut or too large, cleaned."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ml.errors import CorruptFileError, TooLargeError
from ml.imaging.formats.jpeg2000 import check_jpeg2000
from ml.imaging.ingest import inspect_slide
from ml.imaging.slides.slide import open_slide
from tests.ml.imaging.deidentification.support import SECRET, clean
from tests.ml.imaging.multi_file import inspected_apart, picture


def write(path: Path, **options: object) -> Path:
    Image.fromarray(picture(200, 150)).save(path, "JPEG2000", **options)
    return path


def boxed(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I4s", len(body) + 8, kind) + body


def with_boxes(path: Path, *, head: bytes = b"", tail: bytes = b"") -> Path:
    """A file with more in its header and behind its pixels."""
    data = path.read_bytes()
    at = data.index(b"jp2h") - 4
    (size,) = struct.unpack_from(">I", data, at)
    longer = struct.pack(">I", size + len(head)) + data[at + 4 : at + size] + head
    path.write_bytes(data[:at] + longer + data[at + size :] + tail)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.jp2", "a.j2k"])
def test_jpeg2000_is_read_in_the_confined_child(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, tile_size=(64, 64))
    out = tmp_path / "out"
    inspection = inspected_apart(path, out)
    assert (inspection["kind"], inspection["width_px"], inspection["height_px"]) == (
        "still",
        200,
        150,
    )
    with open_slide(out / inspection["pixels"]) as slide:
        pixels = slide.read_level(0, (0, 0), (200, 150))
    assert np.abs(pixels.astype(int) - picture(200, 150)).mean() < 8


def test_depth_transparency_scale_and_profile_remain(tmp_path: Path) -> None:
    deep = np.full((40, 50), 40_000, np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.jp2")
    Image.new("RGBA", (50, 40), (255, 0, 0, 0)).save(tmp_path / "clear.jp2")
    for name, expected in (("deep.jp2", 156), ("clear.jp2", 255)):
        with open_slide(tmp_path / name) as still:
            assert abs(still.read_level(0, (0, 0), (50, 40)).astype(int) - expected).max() <= 1
            assert still.info.mpp_x is None
    # 2,000,000 pixels a metre: half a micron each
    resolution = boxed(b"res ", boxed(b"resc", struct.pack(">HHHHbb", 2, 1, 2, 1, 6, 6)))
    with open_slide(with_boxes(write(tmp_path / "scaled.jp2"), head=resolution)) as still:
        assert still.info.mpp_x == pytest.approx(0.5)


@pytest.mark.parametrize("options", [{}, {"tile_size": (64, 64)}, {"no_jp2": True}])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.97])
def test_a_cut_image_is_refused(tmp_path: Path, share: float, options: dict[str, object]) -> None:
    path = write(tmp_path / "a.jp2", **options)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    (tmp_path / "out").mkdir()
    with pytest.raises(CorruptFileError, match="JPEG 2000"):
        inspect_slide(path=str(path), out_dir=str(tmp_path / "out"))


def test_excessive_claimed_dimensions_are_refused_before_decoding(tmp_path: Path) -> None:
    path = write(tmp_path / "a.j2k", no_jp2=True)
    data = bytearray(path.read_bytes())
    struct.pack_into(">II", data, 8, 20_000, 20_000)  # Xsiz and Ysiz
    path.write_bytes(bytes(data))
    with pytest.raises(TooLargeError, match=r"20,000 x 20,000 px.* 100,000,000 px"):
        check_jpeg2000(path)
    with pytest.raises(TooLargeError):
        open_slide(path)


def test_comments_are_removed_and_coded_pixels_unchanged(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jp2", comment=SECRET, tile_size=(64, 64))
    with_boxes(
        path,
        head=boxed(b"lbl ", SECRET.encode()),
        tail=boxed(b"xml ", SECRET.encode()) + boxed(b"uuid", bytes(16) + SECRET.encode()),
    )
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert cleaned.removed == [
        "JPEG 2000 box lbl", "JPEG 2000 box uuid", "JPEG 2000 box xml", "JPEG 2000 comment",
    ]  # fmt: skip
    assert SECRET.encode() not in made.read_bytes()
    assert made.stat().st_size == path.stat().st_size
    assert Image.open(made).tobytes() == Image.open(path).tobytes()
    assert clean(made, tmp_path / "again")[0] is None
    assert clean(write(tmp_path / "plain.jp2"), tmp_path / "plain")[0] is None


def test_bytes_after_the_pixels_are_removed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.j2k", no_jp2=True)
    path.write_bytes(path.read_bytes() + SECRET.encode())
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert cleaned.removed == ["data after the image"]
    assert SECRET.encode() not in made.read_bytes()

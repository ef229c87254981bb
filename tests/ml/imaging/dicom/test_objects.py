"""DICOM objects on disk: each frame is found by its offset."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pydicom import dcmread
from pydicom.dataset import Dataset

from ml.errors import CorruptFileError
from ml.imaging.dicom.objects import FrameOutsideError, StoredObject
from ml.imaging.dicom.writing import add_offsets, coded_pixels, head_of
from tests.ml.imaging.deidentification.support import write_dicom

JPEG = "1.2.840.10008.1.2.4.50"
COUNT = 9


def _frames() -> list[bytes]:
    frames = []
    for shade in range(COUNT):
        out = io.BytesIO()
        Image.new("RGB", (16, 16), (shade * 20, 90, 7)).save(out, "JPEG", comment=b"x" * shade)
        frames.append(out.getvalue())
    assert {len(frame) % 2 for frame in frames} == {0, 1}
    return frames


def _head(frames: list[bytes], *, extended: bool) -> tuple[Dataset, bytes]:
    data = Dataset()
    data.SOPClassUID, data.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.77.1.6", "1.2.3"
    data.Rows = data.Columns = 16
    data.SamplesPerPixel, data.BitsAllocated, data.NumberOfFrames = 3, 8, len(frames)
    data.PhotometricInterpretation, data.PlanarConfiguration = "YBR_FULL_422", 0
    data.BitsStored, data.HighBit, data.PixelRepresentation = 8, 7, 0
    if extended:
        add_offsets(data, np.array([len(frame) for frame in frames], np.int64))
    return data, head_of(data, JPEG)


def _with_table(frames: list[bytes]) -> bytes:
    """A basic offset table, and each frame in two fragments."""
    items, offsets, at = b"", [], 0
    for frame in frames:
        padded = frame + b"\0" * (len(frame) % 2)
        half = len(padded) // 4 * 2
        offsets.append(at)
        for part in (padded[:half], padded[half:]):
            items += struct.pack("<HHI", 0xFFFE, 0xE000, len(part)) + part
            at += 8 + len(part)
    table = struct.pack(f"<{len(offsets)}I", *offsets)
    head = struct.pack("<HH2sHI", 0x7FE0, 0x0010, b"OB", 0, 0xFFFFFFFF)
    head += struct.pack("<HHI", 0xFFFE, 0xE000, len(table)) + table
    return head + items + struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)


@pytest.mark.parametrize("how", ["extended", "walked", "table"])
def test_each_frame_is_found(tmp_path: Path, how: str) -> None:
    frames, path = _frames(), tmp_path / "a.dcm"
    _, head = _head(frames, extended=how == "extended")
    pixels = _with_table(frames) if how == "table" else b"".join(coded_pixels(iter(frames)))
    path.write_bytes(head + pixels)
    stored = StoredObject(path)
    assert (stored.frame_count, stored.syntax) == (COUNT, JPEG)
    for number in (0, 3, COUNT - 1):
        assert stored.frame(number).rstrip(b"\0") == frames[number].rstrip(b"\0")
    with pytest.raises(FrameOutsideError, match=rf"{COUNT + 1}: .*{COUNT}"):
        stored.frame(COUNT)
    assert b"".join(stored.pixel_pieces()) == pixels
    assert stored.pixel_bytes() == len(pixels)
    assert dcmread(path).pixel_array.shape == (COUNT, 16, 16, 3)


def test_uncompressed_frames_are_located_by_their_size(tmp_path: Path) -> None:
    stored = StoredObject(write_dicom(tmp_path / "a.dcm"))
    assert stored.frame(1) == bytes(range(16, 32))
    assert not stored.is_deidentified()
    assert stored.is_of_tissue()
    assert not StoredObject(write_dicom(tmp_path / "l.dcm", image_type="LABEL")).is_of_tissue()


@pytest.mark.parametrize("how", ["extended", "walked", "table"])
def test_a_cut_object_is_refused(tmp_path: Path, how: str) -> None:
    frames, path = _frames(), tmp_path / "a.dcm"
    _, head = _head(frames, extended=how == "extended")
    pixels = _with_table(frames) if how == "table" else b"".join(coded_pixels(iter(frames)))
    path.write_bytes((head + pixels)[:-300])
    with pytest.raises(CorruptFileError, match="DICOM object"):
        StoredObject(path).frame(0)


def test_a_frame_of_a_large_object_is_found_without_reading_it(tmp_path: Path) -> None:
    """100,000 frames with a table; the pixels are a hole of 40 GB, which nobody could read."""
    count, length = 100_000, 400_000
    data = Dataset()
    data.SOPClassUID, data.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.77.1.6", "1.2.3"
    data.Rows = data.Columns = 512
    data.SamplesPerPixel, data.BitsAllocated, data.NumberOfFrames = 3, 8, count
    add_offsets(data, np.full(count, length, np.int64))
    path, last = tmp_path / "a.dcm", b"\xff\xd8last"
    with path.open("wb") as file:
        file.write(head_of(data, JPEG))
        file.write(struct.pack("<HH2sHI", 0x7FE0, 0x0010, b"OB", 0, 0xFFFFFFFF))
        file.write(struct.pack("<HHI", 0xFFFE, 0xE000, 0))
        file.seek((count - 1) * (length + 8), io.SEEK_CUR)
        file.write(struct.pack("<HHI", 0xFFFE, 0xE000, length) + last.ljust(length, b"\0"))
        file.write(struct.pack("<HHI", 0xFFFE, 0xE0DD, 0))
    assert path.stat().st_size > 40_000_000_000
    assert StoredObject(path).frame(count - 1).startswith(last)


@pytest.mark.parametrize("name", ["ExtendedOffsetTable", "ExtendedOffsetTableLengths"])
@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**63 - 1, 2**64 - 9])
@pytest.mark.parametrize("place", [0, COUNT - 1])
def test_offsets_beyond_any_file_are_refused(
    tmp_path: Path, name: str, number: int, place: int
) -> None:
    frames, path = _frames(), tmp_path / "a.dcm"
    data, _ = _head(frames, extended=True)
    table = np.frombuffer(data[name].value, "<u8").copy()
    table[place] = number
    data[name].value = table.tobytes()
    path.write_bytes(head_of(data, JPEG) + b"".join(coded_pixels(iter(frames))))
    with pytest.raises(CorruptFileError, match="beyond"):
        StoredObject(path).frame(0)


@pytest.mark.parametrize("value", [bytes(8 * COUNT - 2), bytes(12), b"\0"])
def test_a_table_without_integers_is_ignored(tmp_path: Path, value: bytes) -> None:
    frames, path = _frames(), tmp_path / "a.dcm"
    data, _ = _head(frames, extended=True)
    data["ExtendedOffsetTable"].value = value
    path.write_bytes(head_of(data, JPEG) + b"".join(coded_pixels(iter(frames))))
    assert StoredObject(path).frame(3).rstrip(b"\0") == frames[3].rstrip(b"\0")


def test_an_offset_table_of_another_type_is_ignored(tmp_path: Path) -> None:
    frames, path = _frames(), tmp_path / "a.dcm"
    data, _ = _head(frames, extended=True)
    head = head_of(data, JPEG).replace(b"\xe0\x7f\x01\x00OV", b"\xe0\x7f\x01\x00UT")
    path.write_bytes(head + b"".join(coded_pixels(iter(frames))))
    assert StoredObject(path).frame(3).rstrip(b"\0") == frames[3].rstrip(b"\0")

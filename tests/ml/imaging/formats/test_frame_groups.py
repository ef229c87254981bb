"""Functional groups of a DICOM object, read one by one in bounded memory."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from pydicom import dcmread

from ml.errors import CorruptFileError, TooLargeError
from ml.imaging.deidentification.dicom import clean_dicom
from ml.imaging.deidentification.result import DeidentificationResult
from ml.imaging.dicom.objects import StoredObject
from ml.imaging.formats import frame_groups
from tests.ml.imaging.deidentification.support import SECRET, write_sparse

COUNT = 2_500  # read as a whole they take several times what is allowed here
MIB = 2**20
BOTH = pytest.mark.parametrize("is_open", [False, True])


def _peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _clean(source: Path, target: Path) -> Path:
    clean_dicom(source, target, DeidentificationResult(), key=b"k")
    return target


@pytest.mark.endurance
@BOTH
def test_names_are_removed_from_each_frame_in_bounded_memory(tmp_path: Path, is_open: bool) -> None:
    source, made = write_sparse(tmp_path / "a.dcm", COUNT, is_open=is_open), tmp_path / "out.dcm"
    _clean(write_sparse(tmp_path / "few.dcm", 3, is_open=is_open), made)  # what is loaded once
    assert _peak(lambda: _clean(source, made)) < 3 * MIB
    assert SECRET.encode() not in made.read_bytes()
    before, after = dcmread(source), dcmread(made)
    assert after.PixelData == before.PixelData
    assert after.ExtendedOffsetTable == before.ExtendedOffsetTable
    assert "DataSetTrailingPadding" not in after
    groups = after.PerFrameFunctionalGroupsSequence
    assert len(groups) == COUNT
    for group in (groups[0], groups[-1]):
        assert "FrameComments" not in group.FrameContentSequence[0]
        assert group.FrameContentSequence[0].DimensionIndexValues == [1, 1]
        place = group.PlanePositionSlideSequence[0]
        assert place.ColumnPositionInTotalImagePixelMatrix == 5


@pytest.mark.slow
@BOTH
def test_an_object_is_opened_without_its_frame_groups(tmp_path: Path, is_open: bool) -> None:
    path = write_sparse(tmp_path / "a.dcm", COUNT, is_open=is_open)
    StoredObject(path)
    assert _peak(lambda: StoredObject(path)) < MIB
    stored = StoredObject(path)
    assert stored.frame(COUNT - 1) == bytes(16)
    assert "PerFrameFunctionalGroupsSequence" not in stored.data
    assert stored.data.ExtendedOffsetTable == bytes(8)
    groups = list(stored.groups())
    assert [len(groups), groups[-1].FrameContentSequence[0].FrameComments] == [COUNT, SECRET]


@BOTH
@pytest.mark.parametrize("share", [0.4, 0.55, 0.6, 0.8])
def test_an_object_truncated_in_its_frame_groups_is_refused(
    tmp_path: Path, is_open: bool, share: float
) -> None:
    path = write_sparse(tmp_path / "a.dcm", 200, is_open=is_open)
    raw = path.read_bytes()[: -16 * 200]
    path.write_bytes(raw[: int(len(raw) * share)])
    with pytest.raises(CorruptFileError, match="DICOM object"):
        StoredObject(path).frame(0)
    with pytest.raises(CorruptFileError, match="DICOM object"):
        _clean(path, tmp_path / "out.dcm")


@BOTH
def test_more_descriptions_than_frames_are_refused(tmp_path: Path, is_open: bool) -> None:
    path = write_sparse(tmp_path / "a.dcm", 30, is_open=is_open)
    raw = path.read_bytes()
    frame_count = struct.pack("<HH2sH", 0x0028, 0x0008, b"IS", 2)
    assert raw.count(frame_count + b"30") == 1
    path.write_bytes(raw.replace(frame_count + b"30", frame_count + b"20"))
    with pytest.raises(CorruptFileError, match="20 frames"):
        _clean(path, tmp_path / "out.dcm")
    with pytest.raises(CorruptFileError, match="20 frames"):
        list(StoredObject(path).groups())


@BOTH
def test_a_sequence_of_very_many_items_is_refused_unparsed(
    tmp_path: Path, is_open: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_sparse(tmp_path / "a.dcm", 2, is_open=is_open)
    items, end = b"\xfe\xff\0\xe0\0\0\0\0" * 2_000, b"\xfe\xff\xdd\xe0\0\0\0\0"
    head = struct.pack("<HH2sH", 0x0040, 0x0560, b"SQ", 0)  # of the specimen
    at = path.read_bytes().index(head)
    sequence = struct.pack("<I", 0xFFFFFFFF if is_open else len(items)) + items + end * is_open
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<I", raw, at + 8)
    path.write_bytes(raw[: at + 8] + sequence + raw[at + 12 + length :])
    assert StoredObject(path).frame_count == 2
    monkeypatch.setattr(frame_groups, "MAX_PARTS", 1_000)
    with pytest.raises(TooLargeError, match="attributes"):
        StoredObject(path)
    with pytest.raises(TooLargeError, match="attributes"):
        _clean(path, tmp_path / "out.dcm")

"""Names of the portal are one value each in DICOM, whatever people write."""

from __future__ import annotations

import io
from datetime import datetime

import pytest
from pydicom import Dataset, dcmread, dcmwrite
from pydicom.uid import generate_uid

from ml.imaging.dicom.patient import StudyAttributes, add_all, single_value


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("A\\B", "A/B"),
        ("a\x00b\r\nc\x1b[31m\x85", "a b c [31m"),
        (" A ", "A"),
        ("\x00", ""),
        ("W" * 120, "W" * 64),
        ("😀", "😀"),
    ],
)
def test_a_name_is_one_value_without_control_characters(name: str, expected: str) -> None:
    assert single_value(name, max_characters=64) == expected


@pytest.mark.parametrize("name", ["A\\B", "a\x00b\nc", "W" * 120, "\u202eA", "😀"])
def test_a_written_value_is_read_as_one_value(name: str) -> None:
    uid, data = generate_uid(), Dataset()
    data.SOPClassUID = "1.2.840.10008.5.1.4.1.1.77.1.6"
    data.SpecificCharacterSet = "ISO_IR 192"
    at = datetime(2026, 1, 2)
    add_all(data, StudyAttributes(name, "F", uid, name, at, name, uid, name, 1), uid)
    file = io.BytesIO()
    dcmwrite(file, data, implicit_vr=False, little_endian=True)
    file.seek(0)
    read = dcmread(file, force=True)
    for word in ("PatientID", "AccessionNumber", "StudyDescription", "SeriesDescription"):
        assert isinstance(read[word].value, str), word
        assert "\\" not in read[word].value and "\n" not in read[word].value

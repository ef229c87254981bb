"""An object that says of each of its frames where it lies: out as a file, and in metadata."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from pydicom import dcmread

from ml.imaging.dicom.stored import StoredObject
from portal.exchange.formats.dicom_json import data_json
from portal.exchange.selectors import dicom_objects
from portal.exchange.selectors.dicom_objects import OwnObject
from tests.ml.imaging.deidentify.support import write_sparse

BOTH = pytest.mark.parametrize("is_open", [False, True])


@BOTH
def test_a_file_goes_out_with_what_it_says_of_frames(tmp_path: Path, is_open: bool) -> None:
    path = write_sparse(tmp_path / "a.dcm", 7, is_open=is_open)
    own, before = OwnObject(1, StoredObject(path)), dcmread(path)
    data = own.data()
    data.PatientName = "another"
    sent = dcmread(io.BytesIO(b"".join(own.file(data))))
    assert str(sent.PatientName) == "another"
    for word in ("PerFrameFunctionalGroupsSequence", "PixelData", "ExtendedOffsetTable", "Rows"):
        assert sent[word].value == before[word].value


@BOTH
def test_metadata_list_frames_up_to_a_number(
    tmp_path: Path, is_open: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = OwnObject(1, StoredObject(write_sparse(tmp_path / "a.dcm", 7, is_open=is_open)))

    def told() -> dict[str, object]:
        return data_json(own.data(), syntax=own.syntax, bulk=str, groups=own.groups())

    found = told()
    assert list(found) == sorted(found)
    listed = found["52009230"]["Value"]  # type: ignore[index]
    assert len(listed) == 7
    assert listed[6]["0048021A"]["Value"][0]["0048021E"]["Value"] == [5]
    monkeypatch.setattr(dicom_objects, "MOST_GROUPS", 6)
    assert "52009230" not in told()

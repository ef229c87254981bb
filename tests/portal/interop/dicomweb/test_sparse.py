"""TILED_SPARSE objects, with a position for each frame, as files and as metadata."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from pydicom import dcmread

from ml.imaging.dicom.objects import StoredObject
from portal.interop.dicomweb.formats.json_model import data_json
from portal.interop.dicomweb.selectors import objects
from portal.interop.dicomweb.selectors.objects import OwnObject
from tests.ml.imaging.deidentification.support import write_sparse

BOTH = pytest.mark.parametrize("is_open", [False, True])


@BOTH
def test_a_file_is_served_with_its_frame_attributes(tmp_path: Path, is_open: bool) -> None:
    path = write_sparse(tmp_path / "a.dcm", 7, is_open=is_open)
    served, before = OwnObject(1, StoredObject(path)), dcmread(path)
    data = served.data()
    data.PatientName = "another"
    sent = dcmread(io.BytesIO(b"".join(served.file(data))))
    assert str(sent.PatientName) == "another"
    for word in ("PerFrameFunctionalGroupsSequence", "PixelData", "ExtendedOffsetTable", "Rows"):
        assert sent[word].value == before[word].value


@BOTH
def test_metadata_list_frames_up_to_a_number(
    tmp_path: Path, is_open: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = OwnObject(1, StoredObject(write_sparse(tmp_path / "a.dcm", 7, is_open=is_open)))

    def attributes() -> dict[str, object]:
        return data_json(served.data(), syntax=served.syntax, bulk=str, groups=served.groups())

    dataset = attributes()
    assert list(dataset) == sorted(dataset)
    listed = dataset["52009230"]["Value"]  # type: ignore[index]
    assert len(listed) == 7
    assert listed[6]["0048021A"]["Value"][0]["0048021E"]["Value"] == [5]
    monkeypatch.setattr(objects, "MAX_FRAME_GROUPS", 6)
    assert "52009230" not in attributes()

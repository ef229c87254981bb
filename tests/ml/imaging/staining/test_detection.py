"""The stain in files, also where its field is taken out, and never another text."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import tifffile
from pydicom import dcmread

from ml.imaging.ingest import inspect_slide
from ml.imaging.staining.detection import stain_in_text, stain_of_file
from ml.imaging.staining.dicom import preparation_of
from tests.ml.imaging.deidentification.support import SECRET, clean, write_dicom
from tests.ml.imaging.multi_file import picture

APERIO = "Aperio Image Library v11.2.1\r\n240x160 (128x128) JPEG/RGB Q=90|AppMag = 20|Stain = "


def write_tiff(path: Path, description: str) -> Path:
    with tifffile.TiffWriter(path) as tiff:
        tiff.write(
            picture(),
            tile=(128, 128),
            description=description,
            compression="jpeg",
            photometric="rgb",
            metadata=None,
        )
    return path


def write_stained(path: Path, stain: str, patient: str = SECRET) -> Path:
    data = dcmread(write_dicom(path, patient=patient))
    specimen = data.SpecimenDescriptionSequence[0]
    specimen.SpecimenPreparationSequence = preparation_of(stain, patient)
    data.save_as(path)
    return path


@pytest.mark.parametrize(
    ("text", "stain"),
    [
        (f"{APERIO}H&E|User = x", "H&E"),
        ('<OME><MapAnnotation><Value><M K="Stain">PAS</M></Value></MapAnnotation></OME>', "PAS"),
        ('<Image Stain="H&amp;E"/>', "H&E"),
        ("<Staining>Congo Red</Staining>", "Congo red"),
        ('<Attribute Name="LAB_STAIN" Group="1">Giemsa</Attribute>', "Giemsa"),
        ('<name>aperio.Stain</name>\n<value type="VipsRefString">H&amp;E</value>', "H&E"),
        (f"{APERIO}{SECRET}|User = H&E", ""),
        ("<Stain>Doe Jane</Stain>", ""),
        ("a section that was stained with H&E", ""),
        ("<Stain" + " " * 100_000, ""),
        ("|stain" * 100_000, ""),
    ],
)
def test_only_the_stain_field_is_read(text: str, stain: str) -> None:
    assert stain_in_text(text) == stain


def test_the_stain_of_a_slide_is_read_and_its_field_removed(tmp_path: Path) -> None:
    source = write_tiff(tmp_path / "a.svs", f"{APERIO}H&E|User = {SECRET}")
    assert stain_of_file(source) == "H&E"
    made, cleaned = clean(source, tmp_path / "out")
    assert made is not None
    assert cleaned.stain == "H&E"
    assert stain_of_file(made) == ""
    assert {"Stain", "User"} <= set(cleaned.removed)


def test_free_text_in_the_stain_field_is_ignored(tmp_path: Path) -> None:
    source = write_tiff(tmp_path / "a.svs", f"{APERIO}{SECRET}|AppMag = 20")
    assert stain_of_file(source) == ""
    assert clean(source, tmp_path / "out")[1].stain == ""


def test_the_stain_of_an_object_is_read_and_its_preparation_removed(tmp_path: Path) -> None:
    source = write_stained(tmp_path / "a.dcm", "H&E")
    assert stain_of_file(source) == "H&E"
    made, cleaned = clean(source, tmp_path / "out")
    assert made is not None
    assert cleaned.stain == "H&E"
    assert "SpecimenPreparationSequence" in cleaned.removed
    assert SECRET.encode() not in made.read_bytes()


def test_the_stain_of_a_series_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(write_stained(tmp_path / "a.dcm", "PAS"), "a.dcm")
    assert clean(path, tmp_path / "out")[1].stain == "PAS"


def test_an_inspected_file_has_its_stain(tmp_path: Path) -> None:
    """Files of a lab that keeps names are inspected unchanged."""
    out = tmp_path / "out"
    out.mkdir()
    source = write_tiff(tmp_path / "a.svs", f"{APERIO}H&E")
    assert inspect_slide(path=str(source), out_dir=str(out))["stain"] == "H&E"


def test_a_truncated_file_has_no_stain(tmp_path: Path) -> None:
    for name, bytes_of in (("a.tif", b"II*\0\xff\xff\0\0"), ("b.png", b"\x89PNG"), ("c", b"")):
        (tmp_path / name).write_bytes(bytes_of)
        assert stain_of_file(tmp_path / name) == ""

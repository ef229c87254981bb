"""Slides of several files: opened in a separate folder, refused if their index leads out of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openslide
import pytest
from pydicom import dcmread

from ml.errors import BadInputError, CorruptFileError, UnsupportedFormatError
from ml.imaging.formats.archives import pack, unpack
from ml.imaging.formats.sniff import sniff
from ml.imaging.ingest import inspect_slide
from ml.imaging.sandbox.parent import run_limited
from ml.imaging.slides.slide import open_slide
from tests.ml.imaging.deidentification.support import write_dicom
from tests.ml.imaging.multi_file import inspected_apart, picture, write_mrxs, write_vms, zipped

Write = Callable[..., Path]


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_vms, write_mrxs])
def test_a_set_arrives_as_one_archive_and_is_opened_in_the_child(
    write: Write, tmp_path: Path
) -> None:
    write(tmp_path / "from" / "scanner")
    archive = zipped(tmp_path / "from", tmp_path / "a-file-of-a-user")
    assert sniff(archive) == "slide"
    out = tmp_path / "out"
    inspection = inspected_apart(archive, out)
    assert (inspection["kind"], inspection["width_px"], inspection["height_px"]) == (
        "slide",
        512,
        256,
    )
    assert inspection["pixels"].startswith("set/scanner/slide.")
    with open_slide(out / inspection["pixels"]) as slide:
        pixels = slide.read_region((0, 0), (512, 256), (512, 256))
    assert np.abs(pixels.astype(int) - picture()).mean() < 12


@pytest.mark.parametrize(
    ("write", "named"),
    [
        (write_vms, {"image": "../theirs/secret.jpg"}),
        (write_mrxs, {"data": "../../theirs/secret.jpg"}),
    ],
)
def test_an_index_that_leads_out_of_its_folder_is_refused(
    write: Write, named: dict[str, str], tmp_path: Path
) -> None:
    theirs = write(tmp_path / "theirs")
    (tmp_path / "theirs" / "secret.jpg").write_bytes(
        (theirs.parent / ("image.jpg" if write is write_vms else "slide/Data0000.dat")).read_bytes()
    )
    main = write(tmp_path / "mine", **named)
    with openslide.OpenSlide(str(main)) as stolen:  # OpenSlide follows it
        assert stolen.read_region((0, 0), 0, (8, 8)).getpixel((4, 4))[3] == 255
    with pytest.raises(UnsupportedFormatError, match="outside"):
        open_slide(main)
    archive = zipped(tmp_path / "mine", tmp_path / "mine.zip")
    with pytest.raises(UnsupportedFormatError, match="outside"):
        inspect_slide(path=str(archive), out_dir=str(tmp_path / "out"))


def test_the_kernel_refuses_a_path_that_a_check_would_miss(
    tmp_path: Path, child_module: str
) -> None:
    """The check is left out on purpose, so that only the child's confinement prevents it."""
    write_vms(tmp_path / "theirs")
    main = write_vms(tmp_path / "mine", image="../theirs/image.jpg")
    call = (f"{child_module}:open_unchecked", {"path": str(main)})
    assert run_limited(*call, reads=(tmp_path,)) == {"size": [512, 256]}
    assert "error" in run_limited(*call, reads=(tmp_path / "mine",))


@pytest.mark.parametrize(
    ("write", "left_out"),
    [
        (write_mrxs, "slide/Slidedat.ini"),
        (write_mrxs, "slide/Index.dat"),
        (write_mrxs, "slide/Data0000.dat"),
        (write_vms, "image.jpg"),
        (write_vms, "map.jpg"),
    ],
)
def test_an_incomplete_set_is_refused_and_the_file_is_named(
    write: Write, left_out: str, tmp_path: Path
) -> None:
    write(tmp_path / "from")
    (tmp_path / "from" / left_out).unlink()
    archive = zipped(tmp_path / "from", tmp_path / "a.zip")
    with pytest.raises(CorruptFileError, match=f"incomplete: {re.escape(left_out)} is missing"):
        inspect_slide(path=str(archive), out_dir=str(tmp_path / "out"))


def test_a_name_that_no_file_can_have_is_a_missing_file(tmp_path: Path) -> None:
    write_vms(tmp_path / "from", image="a" * 300)
    archive = zipped(tmp_path / "from", tmp_path / "a.zip")
    with pytest.raises(CorruptFileError, match="missing"):
        inspect_slide(path=str(archive), out_dir=str(tmp_path / "out"))


def test_two_series_in_one_archive_are_refused(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    for number in (1, 2):
        path = write_dicom(tmp_path / "from" / f"{number}.dcm")
        data = dcmread(path)
        data.SeriesInstanceUID = f"1.2.3.{number}"
        data.save_as(path)
    archive = zipped(tmp_path / "from", tmp_path / "a.zip")
    with pytest.raises(UnsupportedFormatError, match="several"):
        inspect_slide(path=str(archive), out_dir=str(tmp_path / "out"))


def test_packed_files_round_trip_through_unpacking(tmp_path: Path) -> None:
    write_mrxs(tmp_path / "from")
    files = [path for path in sorted((tmp_path / "from").rglob("*")) if path.is_file()]
    members = [(path.relative_to(tmp_path / "from").as_posix(), path) for path in files]
    packed = b"".join(pack(members))
    assert packed == b"".join(pack(members))
    (tmp_path / "a.zip").write_bytes(packed)
    unpack(tmp_path / "a.zip", tmp_path / "to")
    for name, path in members:
        assert (tmp_path / "to" / name).read_bytes() == path.read_bytes()


def test_two_slides_in_one_archive_are_refused(tmp_path: Path) -> None:
    write_vms(tmp_path / "from" / "a")
    write_vms(tmp_path / "from" / "b")
    archive = zipped(tmp_path / "from", tmp_path / "a.zip")
    with pytest.raises(UnsupportedFormatError, match="several slides"):
        inspect_slide(path=str(archive), out_dir=str(tmp_path / "out"))


def test_an_archive_without_a_set_is_refused(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "a.svs").write_bytes(bytes(100))
    archive = zipped(tmp_path / "from", tmp_path / "a.zip")
    with pytest.raises(UnsupportedFormatError, match="unpack"):
        sniff(archive)


def test_an_mrxs_without_its_folder_is_read_as_an_image_or_refused(tmp_path: Path) -> None:
    """Without its folder the file is the small JPEG that it is."""
    alone = tmp_path / "upload"
    alone.write_bytes(write_mrxs(tmp_path / "from").read_bytes())
    assert sniff(alone) == "still"
    named = alone.rename(tmp_path / "upload.mrxs")
    with pytest.raises(BadInputError, match=r"Slidedat\.ini"):
        open_slide(named)

"""MRXS and VMS sets: no name, label or macro is left in them, and every pixel is."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openslide
import pytest

from ml.errors import CorruptFileError, UnsupportedFormatError
from ml.imaging.formats.multi_file import unpack_set
from ml.imaging.slides.slide import open_slide
from ml.types import ImageU8
from tests.ml.imaging import multi_file
from tests.ml.imaging.deidentification.support import clean
from tests.ml.imaging.multi_file import SECRET, SLIDE_ID, write_mrxs, write_vms, zipped

Write = Callable[..., Path]
BOTH = pytest.mark.parametrize("write", [write_vms, write_mrxs])


def _pixels(index: Path) -> ImageU8:
    with open_slide(index) as slide:
        return slide.read_region((0, 0), (512, 256), (512, 256))


@BOTH
def test_a_set_contains_no_names_and_equal_pixels(write: Write, tmp_path: Path) -> None:
    index = write(tmp_path / "from" / SECRET, named=True)
    before = _pixels(index)
    with openslide.OpenSlide(str(index)) as slide:
        assert "macro" in slide.associated_images
    made, cleaned = clean(zipped(tmp_path / "from", tmp_path / "a.zip"), tmp_path / "out")
    assert made is not None
    with zipfile.ZipFile(made) as archive:
        everything = [name.encode() + archive.read(name) for name in archive.namelist()]
    assert SECRET.encode() not in b"".join(everything)
    assert b"2009" not in b"".join(everything)
    after = unpack_set(made, tmp_path / "clean")
    assert np.array_equal(_pixels(after), before)
    with openslide.OpenSlide(str(after)) as slide:
        assert dict(slide.associated_images) == {}
        assert float(slide.properties["openslide.mpp-x"]) == 0.5
        assert slide.properties["openslide.objective-power"] == "20"
    assert {"macro image", "names of files"} <= set(cleaned.removed)
    assert cleaned.left == []


def test_label_and_id_are_removed_from_an_mrxs(
    tmp_path: Path,
) -> None:
    write_mrxs(tmp_path / "from", named=True)
    size = (tmp_path / "from/slide/Data0000.dat").stat().st_size
    made, cleaned = clean(zipped(tmp_path / "from", tmp_path / "a.zip"), tmp_path / "out")
    assert made is not None
    with zipfile.ZipFile(made) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    names = ["slide.mrxs", "slide/Data0000.dat", "slide/Index.dat", "slide/Slidedat.ini"]
    assert sorted(files) == names
    assert files["slide.mrxs"] == b""
    assert len(files["slide/Data0000.dat"]) == size  # nothing moved
    assert files["slide/Data0000.dat"].count(b"\xff\xd8\xff") == 2  # the tiles'
    assert not any(SLIDE_ID.encode() in data for data in files.values())
    gone = {"SLIDE_ID", "SLIDE_NAME", "SLIDE_CREATIONDATETIME", "BARCODE_VALUE"}
    gone |= {"label image", "thumbnail image", "preview in the .mrxs file"}
    assert gone <= set(cleaned.removed)


@BOTH
def test_removing_names_twice_changes_nothing(write: Write, tmp_path: Path) -> None:
    write(tmp_path / "from", named=True)
    first, _ = clean(zipped(tmp_path / "from", tmp_path / "a.zip"), tmp_path / "out")
    assert first is not None
    again = first.rename(tmp_path / "b.zip")
    twice, cleaned = clean(again, tmp_path / "twice")
    assert (twice, cleaned.removed) == (None, [])


def test_a_name_in_a_file_name_is_removed(tmp_path: Path) -> None:
    write_vms(tmp_path / "from" / SECRET)
    made, cleaned = clean(zipped(tmp_path / "from", tmp_path / "a.zip"), tmp_path / "out")
    assert made is not None and cleaned.removed == ["names of files"]
    assert SECRET.encode() not in made.read_bytes()


def test_a_vms_without_restart_markers_is_complete(tmp_path: Path) -> None:
    index = write_vms(tmp_path / "from", named=True)
    index.write_text(index.read_text() + "OptimisationFile=gone.opt\nAuthCode=77\n")
    made, cleaned = clean(zipped(tmp_path / "from", tmp_path / "a.zip"), tmp_path / "out")
    assert made is not None and "AuthCode" in cleaned.removed
    assert unpack_set(made, tmp_path / "clean").name == "slide.vms"


@BOTH
def test_no_file_contains_its_full_path(write: Write, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"of another lab")
    index = write(tmp_path / "from", named=True)
    if write is write_vms:
        index.write_text(f"{index.read_text()}OptimisationFile={other}\n")
    else:  # within the folder there is one of that name
        listing = tmp_path / "from/slide/Slidedat.ini"
        listing.write_text(listing.read_text().replace("=Data0000.dat", "=/Data0000.dat"))
    with pytest.raises(UnsupportedFormatError, match="outside"):
        clean(zipped(tmp_path / "from", tmp_path / "a.zip"), tmp_path / "out")


@pytest.mark.parametrize("slide_id", [SECRET, "Jürgen Müller"])
def test_a_short_or_odd_id_of_an_mrxs_is_removed_too(
    slide_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multi_file, "SLIDE_ID", slide_id)
    before = _pixels(write_mrxs(tmp_path / "from"))
    made, cleaned = clean(zipped(tmp_path / "from", tmp_path / "a.zip"), tmp_path / "out")
    assert made is not None and "SLIDE_ID" in cleaned.removed
    assert slide_id.encode() not in made.read_bytes()
    assert np.array_equal(_pixels(unpack_set(made, tmp_path / "clean")), before)


@BOTH
def test_a_file_that_is_named_often_is_packed_once(write: Write, tmp_path: Path) -> None:
    """A short index must not make many copies of a large file."""
    main = write(tmp_path / "from", named=True)
    index = main if write is write_vms else tmp_path / "from/slide/Slidedat.ini"
    plain = next(
        line for line in index.read_text().splitlines() if line.startswith(("ImageFile", "FILE_0"))
    ).partition("=")[2]
    numbered = ("ImageFile(0,{})={}", "FILE_{}={}")[write is write_mrxs]
    more = "\n".join(numbered.format(number, "./" * number + plain) for number in range(1, 5))
    text = index.read_text().replace("FILE_COUNT=1", "FILE_COUNT=5")
    ending = f"={plain}\n"
    index.write_text(text.replace(ending, f"{ending}{more}\n", 1))
    made, _ = clean(zipped(tmp_path / "from", tmp_path / "a.zip"), tmp_path / "out")
    assert made is not None
    with zipfile.ZipFile(made) as archive:
        assert sum("mage" in name or "Data" in name for name in archive.namelist()) == 1


def test_an_mrxs_with_an_endless_count_has_no_data(tmp_path: Path) -> None:
    write_mrxs(tmp_path / "from", named=True)
    index = tmp_path / "from/slide/Slidedat.ini"
    index.write_text(index.read_text().replace("FILE_COUNT=1", f"FILE_COUNT={'1' * 5000}"))
    with pytest.raises(CorruptFileError, match="outside"):
        clean(zipped(tmp_path / "from", tmp_path / "a.zip"), tmp_path / "out")


@pytest.mark.parametrize(
    ("at", "value"),
    [(41, 2**31 - 1), (-12, 2**31 - 1), (-8, 2**31 - 1), (-4, 9), (-28, 2**30)],
)
def test_a_damaged_index_of_an_mrxs_is_refused(at: int, value: int, tmp_path: Path) -> None:
    """Its second root, and offset, length, file and count of the last entry before positions."""
    write_mrxs(tmp_path / "from", named=True)
    path = tmp_path / "from/slide/Index.dat"
    data = bytearray(path.read_bytes())
    where = at if at > 0 else len(data) - 36 + at
    data[where : where + 4] = struct.pack("<i", value)
    path.write_bytes(bytes(data))
    with pytest.raises(CorruptFileError):
        clean(zipped(tmp_path / "from", tmp_path / "a.zip"), tmp_path / "out")

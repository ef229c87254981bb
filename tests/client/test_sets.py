"""Slides of several files as one archive that is read and never written."""

from __future__ import annotations

import io
import random
import zipfile

import pytest

from tessera_client import __main__ as command
from tessera_client import files, sets
from tessera_client.__main__ import main
from tessera_client.errors import InvalidError
from tests.client.test_walk import flaky, noise
from tests.ml.imaging.deidentification.support import write_dicom
from tests.ml.imaging.multi_file import write_mrxs, write_vms
from tests.ml.imaging.zarrs import write_ngff


def test_pieces_are_slices_of_a_valid_archive(tmp_path):
    main = write_mrxs(tmp_path / "Ünï")
    (tmp_path / "Ünï/notes.txt").write_text("not of the slide")
    packed = files.LocalFile.of(main)
    data = packed.bytes_from(0, packed.size + 99)
    assert (packed.path.name, len(data)) == ("slide.zip", packed.size)
    drawn = random.Random(4)
    for _ in range(200):
        at, size = drawn.randrange(packed.size), drawn.randrange(1, 9000)
        assert packed.bytes_from(at, size) == data[at : at + size]
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            assert archive.read(name) == (main.parent / name).read_bytes()
        inner = ["slide/Data0000.dat", "slide/Index.dat", "slide/Slidedat.ini"]
        assert archive.namelist() == ["slide.mrxs", *inner]  # as the page orders them
    assert files.LocalFile.of(main).sha256 == packed.sha256


def test_the_files_of_a_set_are_found_in_a_folder(tmp_path):
    write_mrxs(tmp_path)
    write_vms(tmp_path / "glass", named=True)
    (tmp_path / "series").mkdir()
    write_dicom(tmp_path / "series/1.dcm")
    write_dicom(tmp_path / "series/2.dcm")
    for name in ("a.png", "series/notes.txt", ".hidden"):
        (tmp_path / name).write_bytes(b"x")
    names = [path.relative_to(tmp_path).as_posix() for path in sets.find_uploads(tmp_path)]
    assert names == ["a.png", "glass/slide.vms", "series", "series/notes.txt", "slide.mrxs"]
    objects = sets.set_of(tmp_path / "series")
    assert objects is not None and {path.name for path in objects} == {"1.dcm", "2.dcm"}
    assert sets.set_of(tmp_path / "a.png") is None
    with pytest.raises(InvalidError, match=r"slide\.vms"):
        sets.set_of(tmp_path)


def test_frames_of_a_folder_are_sent_in_the_order_of_their_numbers(tmp_path):
    names = ["clip 2/frame_9.png", "clip 2/Frame_10.png", "clip 10/frame_1.png", "f1.png", "f2.png"]
    for name in reversed(names):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    result = [path.relative_to(tmp_path).as_posix() for path in sets.find_uploads(tmp_path)]
    assert result == names


def test_a_zarr_is_sent_with_its_entire_folder(tmp_path):
    folder = write_ngff(tmp_path / "in" / "a.zarr")
    (folder / ".DS_Store").write_bytes(b"x")
    (tmp_path / "in" / "b.png").write_bytes(b"x")
    names = [path.name for path in sets.find_uploads(tmp_path / "in")]
    assert names == ["a.zarr", "b.png"]
    packed = files.LocalFile.of(folder)
    assert packed.path.name == "a.zarr.zip"
    assert sets.set_of(tmp_path / "in") == sets.set_of(folder)
    with zipfile.ZipFile(io.BytesIO(packed.bytes_from(0, packed.size))) as archive:
        named = archive.namelist()
    assert {"a.zarr/.zattrs", "a.zarr/0/.zarray", "a.zarr/0/2/1/2"} <= set(named)
    assert "a.zarr/.DS_Store" not in named


@pytest.mark.parametrize(
    ("write", "gone"), [(write_mrxs, "slide/Index.dat"), (write_vms, "map.jpg")]
)
def test_a_missing_file_is_named_before_anything_is_sent(write, gone, tmp_path):
    main = write(tmp_path)
    (tmp_path / gone).unlink()
    with pytest.raises(InvalidError, match=f"incomplete: {gone} is missing"):
        files.LocalFile.of(main)


@pytest.mark.parametrize("name", ["/elsewhere/map.jpg", "a" * 300])
def test_a_name_that_leads_nowhere_is_that_of_a_missing_file(name, tmp_path):
    main = write_vms(tmp_path)
    main.write_text(main.read_text().replace("map.jpg", name))
    with pytest.raises(InvalidError, match=f"incomplete: {name.lstrip('/')} is missing"):
        files.LocalFile.of(main)


def test_an_archive_of_a_series_has_the_full_name_of_its_folder(tmp_path):
    (tmp_path / "1.2.840.7").mkdir()
    write_dicom(tmp_path / "1.2.840.7/1.dcm")
    assert files.LocalFile.of(tmp_path / "1.2.840.7").path.name == "1.2.840.7.zip"


def test_a_file_that_gets_shorter_while_it_is_sent_is_no_zeros(tmp_path):
    main = write_vms(tmp_path)
    packed = files.LocalFile.of(main)
    (tmp_path / "image.jpg").write_bytes(b"short")
    with pytest.raises(OSError, match="shorter"):
        packed.bytes_from(0, packed.size)


def test_a_slide_of_several_files_is_sent_as_one_over_a_bad_line(seat, tmp_path):
    lost = []

    def lose(request):
        if request.method == "PATCH" and len(lost) < 2:
            lost.append(request)
            return True
        return False

    client, _ = flaky(seat, tmp_path, lose)
    case = client.create_case("SETS-1")
    upload = client.upload(case, write_mrxs(tmp_path / "a", named=True))
    other = client.upload(case, write_vms(tmp_path / "b", named=True).parent)
    assert lost and (upload.canvas, upload.name) != (None, "")
    assert [slide.vendor for slide in (upload, other)] == ["mirax", "hamamatsu"]
    assert len(list(client.slides(case=case.id))) == 2


def test_the_command_sends_the_sets_of_a_folder_and_names_missing_files(
    seat, tmp_path, monkeypatch, capsys
):
    settings = {"TESSERA_URL": seat.url, "TESSERA_TOKEN": seat.token}
    for name, value in (settings | {"XDG_CACHE_HOME": str(tmp_path)}).items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "scanner"
    write_mrxs(folder / "whole")
    write_mrxs(folder / "cut")
    (folder / "cut/slide/Data0000.dat").unlink()
    noise(folder / "still.png", 8)
    shut = tmp_path / "shut"
    shut.mkdir()
    find_uploads = sets.find_uploads

    def some(path):
        if path == shut:
            raise PermissionError(13, "Permission denied", str(path))
        return find_uploads(path)

    monkeypatch.setattr(command, "find_uploads", some)
    assert main(["--create", "--case", "SHELL-2", str(shut), str(folder)]) == 1
    output = capsys.readouterr()
    assert [line.partition(": ")[0] for line in output.out.splitlines()] == [
        str(folder / "still.png"),
        str(folder / "whole/slide.mrxs"),
    ]
    assert "slide/Data0000.dat is missing" in output.err
    assert f"{shut}: " in output.err and "Permission denied" in output.err

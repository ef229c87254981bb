"""ZIP archives from users: nothing leaves the folder, nothing grows unbounded."""

from __future__ import annotations

import io
import stat
import struct
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from ml.errors import BadInputError, CorruptFileError, TooLargeError, UnsupportedFormatError
from ml.imaging.formats.archives import enclosing_folder, open_archive, unpack


def _archive(path: Path, *names: str, content: bytes = b"x", mode: int = 0) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return path


def test_files_are_extracted_into_the_folder_without_system_files(tmp_path: Path) -> None:
    path = _archive(tmp_path / "a.zip", "a/b.dat", "__MACOSX/a/._b.dat", "a\\c.dat", "a/Thumbs.db")
    unpack(path, tmp_path / "out")
    names = sorted(
        p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*")
    )
    assert names == ["a", "a/b.dat", "a/c.dat"]


@pytest.mark.parametrize(
    "name",
    [
        *("../out.txt", "a/../../out.txt", "/etc/out.txt", "..\\out.txt", "C:\\out.txt"),
        *("\\\\server\\out.txt", "a\\..\\..\\out.txt", "a\x07b"),
    ],
)
def test_a_path_that_leads_out_is_refused_before_anything_is_written(
    name: str, tmp_path: Path
) -> None:
    path = _archive(tmp_path / "a.zip", "first.dat", name)
    with pytest.raises(UnsupportedFormatError):
        unpack(path, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.zip"]


def test_names_of_windows_are_read_with_slashes_and_its_folders_left_out(tmp_path: Path) -> None:
    path = _archive(tmp_path / "a.zip", "a\\", "a\\b\\c.dat", ".\\a\\d.dat", "n\u00a0o.dat")
    with zipfile.ZipFile(path, "a") as archive:
        folder = zipfile.ZipInfo("a\\b")
        folder.external_attr = 0x10
        archive.writestr(folder, b"")
    with open_archive(path) as (archive, files):
        assert [entry.filename for entry in files] == ["a/b/c.dat", "a/d.dat", "n\u00a0o.dat"]
        assert [archive.read(entry) for entry in files] == [b"x"] * 3


def test_files_added_by_macos_are_skipped(tmp_path: Path) -> None:
    names = ["s/__MACOSX/x", "s/._slide.mrxs", "s/.DS_Store", ".Trashes/y", "s/slide.mrxs"]
    with open_archive(_archive(tmp_path / "a.zip", *names)) as (_, files):
        assert [entry.filename for entry in files] == ["s/slide.mrxs"]


def test_an_archive_with_64_bit_fields_is_read(tmp_path: Path) -> None:
    with (
        zipfile.ZipFile(tmp_path / "a.zip", "w") as archive,
        archive.open("a\\b", "w", force_zip64=True) as member,
    ):
        member.write(b"long")
    data = bytearray((tmp_path / "a.zip").read_bytes())
    at, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
    listing = end - at
    far = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, listing, at)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, end, 1)
    data[end:] = (
        far
        + locator
        + b"PK\5\6"
        + struct.pack("<HHHHIIH", 0, 0, *[0xFFFF] * 2, *[0xFFFFFFFF] * 2, 0)
    )
    (tmp_path / "a.zip").write_bytes(data)
    with open_archive(tmp_path / "a.zip") as (archive, files):
        assert [archive.read(entry) for entry in files] == [b"long"]


@pytest.mark.parametrize(
    ("names", "folder"),
    [(["a/b", "a/c/d"], "a/"), (["a/b", "c/d"], ""), (["a/b", "c"], ""), (["a"], ""), ([], "")],
)
def test_a_single_enclosing_folder_is_recognised(names: list[str], folder: str) -> None:
    assert enclosing_folder(names) == folder


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_a_link_or_device_is_refused(kind: int, tmp_path: Path) -> None:
    path = _archive(tmp_path / "a.zip", "a", content=b"/etc/passwd", mode=kind | 0o777)
    with pytest.raises(UnsupportedFormatError, match="a link"):
        unpack(path, tmp_path / "out")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("names", [("a", "a"), ("a", "A"), ("a", "a/b")])
def test_duplicate_names_are_refused(names: tuple[str, ...], tmp_path: Path) -> None:
    path = _archive(tmp_path / "a.zip", *names)
    with pytest.raises(UnsupportedFormatError, match="twice"):
        unpack(path, tmp_path / "out")


def test_a_bomb_is_refused_by_its_declared_size(tmp_path: Path) -> None:
    path = _archive(tmp_path / "a.zip", "a", content=bytes(200_000_000))
    with pytest.raises(TooLargeError, match="200,000,000 bytes"):
        unpack(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_bomb_with_a_false_size_is_refused(tmp_path: Path) -> None:
    data = bytearray(_archive(tmp_path / "a.zip", "a", content=bytes(50_000_000)).read_bytes())
    at = data.rfind(b"PK\x01\x02")
    struct.pack_into("<I", data, at + 24, 1_000)  # in the list of files
    struct.pack_into("<I", data, 22, 1_000)
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(CorruptFileError):
        unpack(tmp_path / "a.zip", tmp_path / "out")
    assert sum(p.stat().st_size for p in (tmp_path / "out").rglob("*")) <= 1_000


def test_a_long_list_of_files_is_refused_before_it_is_read(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for n in range(25_000):
            archive.writestr(f"{n}", b"")
    (tmp_path / "a.zip").write_bytes(out.getvalue())
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError, match="25,000"):
            unpack(tmp_path / "a.zip", tmp_path / "out")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("share", [10, 60, 0.5, 0.98])
def test_a_cut_archive_is_refused(share: float, tmp_path: Path) -> None:
    data = _archive(tmp_path / "a.zip", "a", "b", content=bytes(range(256)) * 40).read_bytes()
    (tmp_path / "a.zip").write_bytes(data[: int(share if share > 1 else len(data) * share)])
    with pytest.raises(BadInputError, match=r"truncated|damaged"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


def test_an_encrypted_or_oddly_packed_archive_is_named(tmp_path: Path) -> None:
    data = bytearray(_archive(tmp_path / "a.zip", "a").read_bytes())
    at = data.rfind(b"PK\x01\x02")
    data[at + 8] |= 1
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(UnsupportedFormatError, match="encrypted"):
        unpack(tmp_path / "a.zip", tmp_path / "out")
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a", b"x" * 100)
    with pytest.raises(UnsupportedFormatError, match="unsupported compression"):
        unpack(tmp_path / "b.zip", tmp_path / "out")


def test_a_directory_that_points_out_of_the_file_is_refused(tmp_path: Path) -> None:
    data = bytearray(_archive(tmp_path / "a.zip", "a").read_bytes())
    at = data.rfind(b"PK\x01\x02")
    struct.pack_into("<I", data, at + 42, 2**31)  # where the file's own header lies
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(CorruptFileError, match="outside"):
        unpack(tmp_path / "a.zip", tmp_path / "out")
    data[-6:-2] = struct.pack("<I", 2**31)  # where the list lies: all offsets become negative
    struct.pack_into("<I", data, at + 42, 0)
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(CorruptFileError):
        unpack(tmp_path / "a.zip", tmp_path / "out")


def test_a_name_that_is_not_text_is_refused_as_damaged(tmp_path: Path) -> None:
    """The list of files is whole; the name in front of the file itself is read when that is."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("Ünï.txt", b"x" * 100)
    data = path.read_bytes()
    name = "Ünï.txt".encode()
    path.write_bytes(data.replace(name, b"\xb5" * len(name), 1))
    with pytest.raises(CorruptFileError, match="truncated"):
        unpack(path, tmp_path / "out")


def test_a_file_without_a_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("A", b"x")
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\1\2") + 28
    data[at : at + 4] = struct.pack("<HH", 0, 1)  # the name is a part of what follows it
    path.write_bytes(bytes(data))
    with pytest.raises(UnsupportedFormatError, match="leads outside it: ''"):
        unpack(path, tmp_path / "out")

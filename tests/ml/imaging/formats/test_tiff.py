"""Directories of TIFF files: what they may claim, and how much of the claim is read."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import pytest
import tifffile

from ml.errors import CorruptFileError, TooLargeError
from ml.imaging.formats.sniff import sniff
from ml.imaging.formats.tiff import is_ndpi, read_directories
from ml.imaging.formats.tiff_fields import MAX_DIRECTORIES
from tests.ml.imaging.conftest import tiff_bytes

MIB = 1024**2
_BYTE, _SHORT, _LONG = 1, 3, 4


def _sparse(path: Path, entries: list[tuple[int, int, int, int]], size: int) -> Path:
    """A TIFF of these tags in a file of ``size`` bytes, mostly a hole."""
    path.write_bytes(tiff_bytes(entries))
    with path.open("r+b") as file:
        file.truncate(size)
    return path


def _tiled(*more: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
    return [(256, _LONG, 1, 512), (257, _LONG, 1, 512), (322, _SHORT, 1, 256),
            (323, _SHORT, 1, 256), *more]  # fmt: skip


@pytest.mark.parametrize("kind", [_BYTE, _SHORT, _LONG])
def test_a_tag_with_the_length_of_the_file_needs_no_memory(tmp_path: Path, kind: int) -> None:
    count = 190 * MIB // {_BYTE: 1, _SHORT: 2, _LONG: 4}[kind]
    claims = _tiled((324, kind, count, 4096), (325, kind, count, 4096))
    path = _sparse(tmp_path / "big.tif", claims, 200 * MIB)
    tracemalloc.start()
    try:
        with pytest.raises((CorruptFileError, TooLargeError), match="tag 324"):
            read_directories(path)
        with pytest.raises((CorruptFileError, TooLargeError), match="tag 324"):
            sniff(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * MIB


def test_many_directories_that_share_one_large_value_are_refused(tmp_path: Path) -> None:
    tags = _tiled((324, _LONG, 4, 8), (325, _LONG, 4, 8), (700, _BYTE, 30 * MIB, 65_536))
    directory = tiff_bytes(tags)[8:-4]
    body = b"II*\0" + struct.pack("<I", 8)
    for _ in range(20):
        body += directory + struct.pack("<I", len(body) + len(directory) + 4)
    path = tmp_path / "many.tif"
    path.write_bytes(body + directory + struct.pack("<I", 0))
    with path.open("r+b") as file:
        file.truncate(40 * MIB)
    with pytest.raises(TooLargeError, match=r"tags of .* MiB"):
        read_directories(path)


def test_a_chain_of_too_many_directories_is_refused_and_not_truncated(tmp_path: Path) -> None:
    directory = tiff_bytes([(256, _SHORT, 1, 1)])[8:-4]
    body = b"II*\0" + struct.pack("<I", 8)
    for _ in range(MAX_DIRECTORIES):
        body += directory + struct.pack("<I", len(body) + len(directory) + 4)
    path = tmp_path / "long.tif"
    path.write_bytes(body + directory + bytes(4))
    with pytest.raises(CorruptFileError, match="4,096"):
        read_directories(path)
    assert len(read_directories(path, limit=3)) == 3
    path.write_bytes(body[: -len(directory) - 4] + directory + bytes(4))
    assert len(read_directories(path)) == MAX_DIRECTORIES


def test_tiles_listed_as_bytes_are_refused(tmp_path: Path) -> None:
    claims = _tiled((324, _BYTE, 4, 8), (325, _BYTE, 4, 8))
    with pytest.raises(CorruptFileError, match="tag 324"):
        read_directories(_sparse(tmp_path / "bytes.tif", claims, 1_000))


@pytest.mark.parametrize("tag", [324, 700])
@pytest.mark.parametrize("order", ["<", ">"])
def test_a_value_outside_the_file_is_refused_by_the_number_of_its_tag(
    tmp_path: Path, order: str, tag: int
) -> None:
    path = tmp_path / "cut.tif"
    path.write_bytes(tiff_bytes([(256, _LONG, 1, 5), (tag, _LONG, 4, 1_000)], order=order))
    with pytest.raises(CorruptFileError, match=rf"TIFF tag {tag} .*1,016"):
        read_directories(path)


def test_non_finite_numbers_are_ignored(tmp_path: Path) -> None:
    nan = struct.unpack("<I", struct.pack("<f", float("nan")))[0]
    path = tmp_path / "nan.tif"
    path.write_bytes(tiff_bytes([(256, 11, 1, nan), (258, 11, 1, nan), (340, 11, 1, nan)]))
    directories = read_directories(path)[0]
    assert (directories.width_px, directories.bits, directories.min_value) == (0, (1,), None)


def test_the_first_of_many_values_is_used(tmp_path: Path) -> None:
    claims = [(256, _LONG, 1, 512), (257, _LONG, MIB, 4096), *_tiled()[2:]]
    path = _sparse(tmp_path / "many.tif", claims, 8 * MIB)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(struct.pack("<I", 77))
    assert read_directories(path)[0].height_px == 77


def test_an_ndpi_is_recognised_by_its_tag_at_any_directory_offset(
    tmp_path: Path, tessera_data: Path, pyramid: Path
) -> None:
    real = tessera_data / "histology/slides/fluorescence-dapi.ndpi"
    assert is_ndpi(real)
    assert sniff(real) == "slide"
    assert not is_ndpi(pyramid)
    far = tmp_path / "far"  # beyond 4 GiB, where a plain reader sees another offset
    with far.open("wb") as file:
        file.write(b"II*\0" + struct.pack("<Q", 5 * 1024**3))
        file.seek(5 * 1024**3)
        file.write(struct.pack("<HHHII", 1, 65420, _LONG, 1, 1) + bytes(8))
    assert is_ndpi(far)
    assert sniff(far) == "slide"


def test_a_big_tiff_is_read_like_a_plain_one(tmp_path: Path) -> None:
    import numpy as np

    for big in (False, True):
        tifffile.imwrite(
            tmp_path / "t.tif", np.zeros((300, 200), np.uint8), bigtiff=big, tile=(64, 64)
        )
        directories = read_directories(tmp_path / "t.tif")[0]
        assert (directories.width_px, directories.height_px, len(directories.offsets)) == (
            200,
            300,
            20,
        )

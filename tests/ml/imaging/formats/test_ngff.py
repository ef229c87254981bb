"""OME-Zarr: read in both versions and by every codec that is taken, refused by name otherwise."""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest

from ml.errors import BadInputError, CorruptFileError, TooLargeError, UnsupportedFormatError
from ml.imaging.formats.sniff import sniff
from ml.imaging.ingest import inspect_slide
from ml.imaging.slides.slide import open_slide
from tests.ml.imaging.multi_file import inspected_apart, picture, zipped
from tests.ml.imaging.zarrs import ozx, write_ngff

WAYS = [
    {"version": 2, "packer": "blosc"},
    {"version": 2, "packer": "zstd"},
    {"version": 2, "packer": "lz4"},
    {"version": 2, "packer": "gzip", "chunk": (3, 64, 300)},
    {"version": 2, "packer": "none"},
    {"version": 3, "packer": "blosc"},
    {"version": 3, "packer": "zstd", "chunk": (1, 50, 64), "shard": (3, 100, 128)},
    {"version": 3, "packer": "gzip", "within": "0"},
]


def inspected(path: Path, out: Path) -> dict[str, Any]:
    out.mkdir(exist_ok=True)
    return inspect_slide(path=str(path), out_dir=str(out))


def shown(path: Path, out: Path) -> Any:
    inspection = inspected(path, out)
    with open_slide(out / inspection["pixels"]) as slide:
        size = (inspection["width_px"], inspection["height_px"])
        return slide.read_level(0, (0, 0), size).astype(int)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way.values())))
def test_a_written_image_is_displayed_unchanged(tmp_path: Path, way: dict[str, Any]) -> None:
    archive = ozx(write_ngff(tmp_path / "a", **way), tmp_path / "a-file-of-a-user")
    assert sniff(archive) == "slide"
    assert np.abs(shown(archive, tmp_path / "out") - picture(300, 200)).mean() < 4


@pytest.mark.slow
def test_the_confined_child_makes_a_pyramid_of_a_folder_that_was_zipped(tmp_path: Path) -> None:
    write_ngff(tmp_path / "from" / "slide.zarr")
    archive = zipped(tmp_path / "from", tmp_path / "a.zip")
    out = tmp_path / "out"
    inspection = inspected_apart(archive, out)
    assert (inspection["kind"], inspection["vendor"], inspection["pixels"]) == (
        "slide",
        "ome-zarr",
        "pixels.tif",
    )
    assert (inspection["width_px"], inspection["height_px"]) == (300, 200)
    assert inspection["mpp_x"] == inspection["mpp_y"] == pytest.approx(0.25)
    assert inspection["levels"][0]["tile_width_px"] == 256


@pytest.mark.parametrize("folder", ["", "scan.zarr\\\\", "out\\\\scan.zarr\\\\"])
def test_an_archive_made_on_windows_is_read(tmp_path: Path, folder: str) -> None:
    plain = ozx(write_ngff(tmp_path / "a", version=2, packer="zstd"), tmp_path / "plain.zip")
    archive = tmp_path / "windows.zip"
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(archive, "w") as target:
        for name in source.namelist():
            target.writestr(folder + name.replace("/", "\\"), source.read(name))
        target.writestr("__MACOSX\\._scan.zarr", b"x")
        target.writestr(folder + "._.zattrs", b"x")
    assert sniff(archive) == "slide"
    assert np.abs(shown(archive, tmp_path / "out") - picture(300, 200)).mean() < 4


def test_without_a_unit_the_scale_is_unknown(tmp_path: Path) -> None:
    archive = ozx(write_ngff(tmp_path / "a", unit=None), tmp_path / "a.ozx")
    assert inspected(archive, tmp_path / "out")["mpp_x"] is None
    archive = ozx(write_ngff(tmp_path / "b", unit="nanometer"), tmp_path / "b.ozx")
    assert inspected(archive, tmp_path / "out")["mpp_x"] is None  # 0.25 nm is no scan


@pytest.mark.parametrize("version", [2, 3])
def test_the_largest_image_that_is_no_label_is_the_slide(tmp_path: Path, version: int) -> None:
    folder = write_ngff(tmp_path / "a", version=version, within="1")
    sizes = {"0": (60, 90), "2": (400, 600)}
    for name, (height, width) in sizes.items():
        other = np.zeros((3, height, width), np.uint8)
        write_ngff(tmp_path / name, other, version=version, within=name)
        (tmp_path / name / name).rename(folder / name)
    named = "".join(
        f'<Image Name="{name}"><Pixels SizeX="1" SizeY="1"/></Image>'
        for name in ("macro", "scan", "label image")
    )
    (folder / "OME").mkdir()
    (folder / "OME" / "METADATA.ome.xml").write_text(f"<OME>{named}</OME>")
    pixels = shown(ozx(folder, tmp_path / "a.ozx"), tmp_path / "out")
    assert np.abs(pixels - picture(300, 200)).mean() < 4


def test_channels_are_summed_in_their_colours_and_windows(tmp_path: Path) -> None:
    deep = np.zeros((1, 2, 3, 64, 64), np.uint16)  # t, c, z, y, x
    deep[0, 0, 1], deep[0, 1, 1, :32] = 2_000, 1_000
    deep[0, :, 0] = 65_535  # a plane that is not the default
    omero = {
        "rdefs": {"defaultZ": 1, "defaultT": 0},
        "channels": [
            {"color": "0000FF", "window": {"start": 0, "end": 4_000}, "active": True},
            {"color": "FF8000", "window": {"start": 0, "end": 1_000}, "active": True},
        ],
    }
    folder = write_ngff(
        tmp_path / "a", deep, omero=omero, axes="tczyx", chunk=(1, 1, 1, 64, 32), unit=None
    )
    pixels = shown(ozx(folder, tmp_path / "a.ozx", compress=True), tmp_path / "out")
    assert np.abs(pixels[8, 8] - (255, 128, 128)).max() <= 4
    assert np.abs(pixels[56, 8] - (0, 0, 128)).max() <= 4


@pytest.mark.parametrize("window", [None, {"start": 0, "end": 65_535}])
def test_sixteen_bits_without_a_window_use_the_range_of_their_values(
    tmp_path: Path, window: dict[str, int] | None
) -> None:
    deep = np.zeros((1, 64, 64), np.uint16)
    deep[0, :32], deep[0, 32:] = 2_000, 4_000  # 12 bits
    channel = {"color": "FFFFFF", "active": True} | ({"window": window} if window else {})
    folder = write_ngff(tmp_path / "a", deep, omero={"channels": [channel]}, chunk=(1, 64, 64))
    pixels = shown(ozx(folder, tmp_path / "a.ozx"), tmp_path / "out")
    assert np.abs(pixels[8, 8] - 2_000 / 4_095 * 255).max() <= 2
    assert np.abs(pixels[56, 8] - 4_000 / 4_095 * 255).max() <= 2


def test_chunks_that_were_never_written_are_filled(tmp_path: Path) -> None:
    folder = write_ngff(tmp_path / "a", packer="none")
    for number in range(3):
        (folder / "0" / str(number) / "0" / "0").unlink()
    pixels = shown(ozx(folder, tmp_path / "a.ozx"), tmp_path / "out")
    assert pixels[4:96, 4:120].max() <= 3
    assert np.abs(pixels[110:190] - picture(300, 200)[110:190]).mean() < 4


def write_metadata(folder: Path, file: str, **changes: Any) -> None:
    """Change what a description says; a value that is a function changes what is there."""
    path = folder / file
    data = json.loads(path.read_text())
    for key, value in changes.items():
        data[key] = value(data[key]) if callable(value) else value
    path.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("file", "changes", "error", "match"),
    [
        ("0/.zarray", {"compressor": {"id": "pickle"}}, UnsupportedFormatError, "'pickle'.*blosc"),
        ("0/.zarray", {"compressor": {"id": "blosc", "by": "x"}}, CorruptFileError, "damaged"),
        ("0/.zarray", {"filters": [{"id": "delta"}]}, UnsupportedFormatError, "uses filters"),
        ("0/.zarray", {"dtype": "<f4"}, UnsupportedFormatError, "'<f4'; expected uint8"),
        ("0/.zarray", {"dtype": [["a", "|O"]]}, UnsupportedFormatError, "expected uint8"),
        ("0/.zarray", {"shape": [3, 2_000_000, 300]}, TooLargeError, "2,000,000 px"),
        ("0/.zarray", {"shape": [3, 200, 300, 1]}, CorruptFileError, "damaged"),
        ("0/.zarray", {"shape": [3, -1, 300]}, CorruptFileError, "damaged"),
        ("0/.zarray", {"chunks": [1, 20_000, 20_000]}, TooLargeError, "chunks of 400,000,000"),
        ("0/.zarray", {"chunks": [1, 100, 64]}, CorruptFileError, "chunk.* truncated or damaged"),
        (".zattrs", {"multiscales": []}, CorruptFileError, "damaged"),
        (".zattrs", {"plate": {}}, UnsupportedFormatError, "plate of many images"),
        (
            ".zattrs",
            {"multiscales": lambda item: [item[0] | {"datasets": [{"path": "../../etc"}]}]},
            CorruptFileError,
            "missing",
        ),
        (
            ".zattrs",
            {"multiscales": lambda item: [item[0] | {"axes": item[0]["axes"][::-1]}]},
            UnsupportedFormatError,
            "axes 'xyc'",
        ),
    ],
)  # fmt: skip
def test_unsupported_features_are_refused_by_name(
    tmp_path: Path, file: str, changes: dict[str, Any], error: type[Exception], match: str
) -> None:
    folder = write_ngff(tmp_path / "a")
    write_metadata(folder, file, **changes)
    with pytest.raises(error, match=match):
        inspected(ozx(folder, tmp_path / "a.ozx"), tmp_path / "out")
    assert not (tmp_path / "out" / "pixels.tif").exists()


@pytest.mark.parametrize("packer", ["blosc", "zstd", "lz4", "gzip", "none"])
def test_a_damaged_or_cut_chunk_is_refused(tmp_path: Path, packer: str) -> None:
    folder = write_ngff(tmp_path / "a", packer=packer)
    path = folder / "0" / "1" / "1" / "1"
    honest = path.read_bytes()
    for bad in (b"", honest[:5], honest[: len(honest) // 2], b"\xff" * len(honest) * 2):
        path.write_bytes(bad)
        with pytest.raises(CorruptFileError):
            inspected(ozx(folder, tmp_path / "a.ozx"), tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("packer", ["blosc", "zstd", "lz4", "gzip"])
def test_a_chunk_that_claims_to_hold_more_is_not_unpacked(tmp_path: Path, packer: str) -> None:
    folder = write_ngff(tmp_path / "a", packer=packer)
    larger = write_ngff(
        tmp_path / "b", np.ones((1, 8_000, 8_000), np.uint8), packer=packer, chunk=(1, 8000, 8000)
    )
    (folder / "0/0/0/0").write_bytes((larger / "0/0/0/0").read_bytes())
    with pytest.raises(BadInputError, match=r"damaged|has .* bytes; the limit"):
        inspected(ozx(folder, tmp_path / "a.ozx"), tmp_path / "out")


def test_a_damaged_index_of_a_shard_is_refused(tmp_path: Path) -> None:
    folder = write_ngff(
        tmp_path / "a", version=3, packer="none", chunk=(1, 50, 64), shard=(3, 100, 128)
    )
    path = folder / "0" / "c" / "0" / "0" / "0"
    honest = path.read_bytes()
    entries = math.prod((3, 2, 2))
    for number in (2**63, len(honest), 2**64 - 2):
        index = np.full(2 * entries, number, "<u8").tobytes()
        index += google_crc32c.value(index).to_bytes(4, "little")
        path.write_bytes(honest[: -len(index)] + index)
        with pytest.raises(CorruptFileError, match=r"shard|chunk"):
            inspected(ozx(folder, tmp_path / "a.ozx"), tmp_path / "out")
    path.write_bytes(honest[:-8] + bytes(8))
    with pytest.raises(CorruptFileError, match="chunk"):  # by its checksum
        inspected(ozx(folder, tmp_path / "a.ozx"), tmp_path / "out")
    path.write_bytes(honest[:50])
    with pytest.raises(CorruptFileError, match="shard"):
        inspected(ozx(folder, tmp_path / "a.ozx"), tmp_path / "out")


def test_a_shard_that_claims_more_chunks_than_it_can_list_is_refused(tmp_path: Path) -> None:
    folder = write_ngff(
        tmp_path / "a", version=3, packer="none", chunk=(1, 50, 64), shard=(3, 100, 128)
    )
    path = folder / "0" / "zarr.json"
    metadata = json.loads(path.read_text())
    for shape in ([3 * 2**30, 50 * 2**30, 64 * 2**30], [3, 50 * 2**20, 128]):
        metadata["chunk_grid"]["configuration"]["chunk_shape"] = shape
        path.write_text(json.dumps(metadata))
        with pytest.raises(CorruptFileError, match="shard"):
            inspected(ozx(folder, tmp_path / "a.ozx"), tmp_path / "out")


def test_a_row_of_chunks_too_large_for_the_memory_is_refused_by_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    low = np.zeros((3, 60, 200), np.uint8)
    archive = ozx(write_ngff(tmp_path / "a", low, chunk=(1, 100, 128)), tmp_path / "a.ozx")
    monkeypatch.setattr("ml.imaging.slides.ngff.MAX_ZARR_ROW_BYTES", 3 * 60 * 200 - 1)
    with pytest.raises(TooLargeError, match=r"36,000 bytes.*35,999"):
        inspected(archive, tmp_path / "out")


def test_a_zarr_without_an_image_and_an_archive_of_two_are_refused(tmp_path: Path) -> None:
    folder = write_ngff(tmp_path / "from" / "a.zarr")
    (folder / ".zattrs").write_text("{}")
    with pytest.raises(UnsupportedFormatError, match="OME-NGFF"):
        inspected(zipped(tmp_path / "from", tmp_path / "a.zip"), tmp_path / "out")
    write_ngff(tmp_path / "from" / "b.zarr")
    with pytest.raises(UnsupportedFormatError, match="several"):
        sniff(zipped(tmp_path / "from", tmp_path / "b.zip"))
    (folder / ".zattrs").write_text("{cut")
    with pytest.raises(CorruptFileError, match="zattrs"):
        inspected(ozx(folder, tmp_path / "c.ozx"), tmp_path / "out")

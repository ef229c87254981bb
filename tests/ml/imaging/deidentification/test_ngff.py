"""OME-Zarr: chunks stay byte for byte, everything that may name somebody stays behind."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from ml.imaging.ingest import inspect_slide
from ml.imaging.slides.slide import open_slide
from tests.ml.imaging.deidentification.support import clean
from tests.ml.imaging.multi_file import zipped
from tests.ml.imaging.zarrs import SECRET, ozx, write_ngff

OMERO: dict[str, Any] = {
    "name": SECRET,
    "rdefs": {"model": SECRET},
    "channels": [
        {"color": "FF0000", "label": SECRET, "window": {"start": 0, "end": 200}},
        {"color": "00FF00", "label": SECRET, "active": False},
        {"color": "0000FF", "label": SECRET, "window": {"start": 10, "end": 255}},
    ],
}


def pixels_of(path: Path, out: Path) -> Any:
    out.mkdir()
    inspection = inspect_slide(path=str(path), out_dir=str(out))
    assert inspection["mpp_x"] == pytest.approx(0.25)
    with open_slide(out / inspection["pixels"]) as slide:
        return slide.read_level(0, (0, 0), (300, 200))


@pytest.mark.parametrize(
    "way",
    [
        {"version": 2, "omero": OMERO},
        {"version": 3, "omero": OMERO},
        {"version": 3, "within": "0", "chunk": (1, 50, 64), "shard": (3, 100, 128)},
    ],
    ids=["2", "3", "3-shards-of-several"],
)
def test_names_are_removed_from_a_zarr_and_chunks_unchanged(
    tmp_path: Path, way: dict[str, Any]
) -> None:
    folder = write_ngff(tmp_path / "from" / f"{SECRET}.zarr", **way)
    (folder / "OME").mkdir()
    (folder / "OME" / "METADATA.ome.xml").write_text(f"<OME>{SECRET}</OME>")
    write_ngff(folder / "labels" / SECRET, np.ones((1, 8, 8), np.uint8), chunk=(1, 8, 8))
    path = zipped(tmp_path / "from", tmp_path / "a.zip")
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert cleaned.removed == [
        "descriptions of the Zarr", "files that the slide does not need", "names of files",
    ]  # fmt: skip
    assert cleaned.left == []
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(made) as after:
        assert SECRET not in " ".join(after.namelist())
        members = {name: after.read(name) for name in after.namelist()}
        chunks = {name: data for name, data in members.items() if name[-1].isdigit()}
        sent = {before.read(name) for name in before.namelist()}
    assert not [name for name, data in members.items() if SECRET.encode() in data]
    assert len(chunks) >= 2
    assert set(chunks.values()) <= sent
    shown = [pixels_of(item, tmp_path / name) for item, name in ((path, "a"), (made, "b"))]
    assert np.array_equal(*shown)
    again = made.rename(tmp_path / "again.zip")
    assert clean(again, tmp_path / "again")[0] is None
    unpacked = zarr.open_group(zarr.storage.ZipStore(again, mode="r"), mode="r")
    assert unpacked["1"].shape == (3, 100, 150), "other readers read it, with all its levels"


@pytest.mark.parametrize("version", [2, 3])
def test_free_text_in_zarr_descriptions_is_removed(tmp_path: Path, version: int) -> None:
    folder = write_ngff(tmp_path / "a", version=version, unit=SECRET)
    file = folder / ("zarr.json" if version == 3 else ".zattrs")
    text = file.read_text().replace('"channel"', f'"{SECRET}"').replace('"0.5"', f'"{SECRET}"')
    file.write_text(text)
    array = folder / "0" / ("zarr.json" if version == 3 else ".zarray")
    made, _ = clean(ozx(folder, tmp_path / "a.zip"), tmp_path / "out")
    assert made is not None
    assert SECRET.encode() not in made.read_bytes()
    inspect_slide(path=str(made), out_dir=str(tmp_path / "out"))
    with zipfile.ZipFile(made) as archive:
        names = json.loads(archive.read(f"0/{array.name}")).get("dimension_names")
    assert names == (["c", "y", "x"] if version == 3 else None)


@pytest.mark.parametrize("version", [2, 3])
def test_a_dataset_that_shows_a_label_is_left_out(tmp_path: Path, version: int) -> None:
    folder = write_ngff(tmp_path / "a", version=version, packer="none")
    chunks = [path for path in (folder / "1").rglob("*") if path.is_file()]
    for path in chunks:
        if not path.name.startswith(".") and path.name != "zarr.json":
            data = path.read_bytes()
            path.write_bytes((b"\xff\0\0\xff" * len(data))[: len(data)])
    archive = ozx(folder, tmp_path / "a.zip")
    made, cleaned = clean(archive, tmp_path / "out")
    assert made is not None
    assert "images that are no levels" in cleaned.removed
    names = zipfile.ZipFile(made).namelist()
    assert any(name.startswith("0/") for name in names)
    assert not any(name.startswith("1/") for name in names)
    (tmp_path / "again.zip").write_bytes(made.read_bytes())
    again = clean(tmp_path / "again.zip", tmp_path / "again")[1]
    assert "images that are no levels" not in again.removed

"""Crates that are damaged or were made to do harm: refused by name, and nothing is written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import uuid
import zipfile
from pathlib import Path

import pytest

from portal.archive.models import Canvas
from portal.core.storage_layout import root as storage_root
from portal.interop.rocrate.formats.reader import DEPTH, CrateError, CrateReader, json_checked
from portal.interop.rocrate.services.imports.cases import case_import
from tests.portal.interop.conftest import Lab1
from tests.portal.interop.rocrate.imports.harm import (
    Entity,
    file_put,
    metadata_change,
    refused,
    row_change,
)

pytestmark = pytest.mark.slow


def test_another_byte_is_found_before_anything_is_written(
    unpacked: Path, other_portal: Lab1
) -> None:
    path = next((unpacked / "originals").iterdir())
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    refused(other_portal, unpacked, rf"originals/{path.name} is damaged")
    assert not storage_root().exists()


def test_a_file_that_is_missing_too_many_or_of_another_length_is_named(
    unpacked: Path, other_portal: Lab1
) -> None:
    (unpacked / "records" / "more.txt").write_text("x")
    refused(other_portal, unpacked, r"records/more.txt is not named")
    (unpacked / "records" / "more.txt").unlink()
    data = (unpacked / "records" / "rois.jsonl").read_bytes()
    (unpacked / "records" / "rois.jsonl").write_bytes(data + b"\n")
    refused(other_portal, unpacked, r"records/rois.jsonl has [\d,]+ bytes")
    (unpacked / "records" / "rois.jsonl").unlink()
    refused(other_portal, unpacked, r"records/rois.jsonl is missing")


def test_a_link_in_a_folder_is_refused(unpacked: Path, other_portal: Lab1) -> None:
    path = next((unpacked / "originals").iterdir())
    shutil.move(path, unpacked.parent / "away")
    path.symlink_to(unpacked.parent / "away")
    refused(other_portal, unpacked, f"originals/{path.name} is a link")
    path.unlink()
    os.mkfifo(path)
    refused(other_portal, unpacked, "not a plain file")


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("../out", r"leads outside it: '../out'"),
        ("/etc/out", r"leads outside it: '/etc/out'"),
        ("a/../../out", "leads outside it"),
        ("records/ROIS.jsonl", r"same name twice: 'records/rois.jsonl'"),
    ],
)
def test_a_zip_with_a_bad_name_is_refused(
    unpacked: Path, other_portal: Lab1, name: str, match: str
) -> None:
    refused(other_portal, _zipped(unpacked, (name, b"x", 0)), match)


def test_a_link_in_a_zip_is_refused(unpacked: Path, other_portal: Lab1) -> None:
    link = ("originals/link", b"/etc/passwd", stat.S_IFLNK | 0o777)
    refused(other_portal, _zipped(unpacked, link), r"a link, 'originals/link'")


def _zipped(folder: Path, *more: tuple[str, bytes, int]) -> Path:
    path = folder.parent / "made.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as crate:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                crate.write(file, file.relative_to(folder).as_posix())
        for name, data, mode in more:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            crate.writestr(info, data)
    return path


def test_a_zip_larger_than_declared_is_refused(unpacked: Path, other_portal: Lab1) -> None:
    (unpacked / "records" / "rois.jsonl").write_bytes(bytes(2**20))
    path = _zipped(unpacked)
    refused(other_portal, path, "rois.jsonl has 1,048,576 bytes")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as crate:
        for n in range(4):
            crate.writestr(f"{n}", bytes(2**26))
    refused(other_portal, path, "would unpack to 4 files of 268,435,456 bytes")


def test_a_cut_zip_is_refused(unpacked: Path, other_portal: Lab1) -> None:
    path = _zipped(unpacked)
    path.write_bytes(path.read_bytes()[:-40])
    refused(other_portal, path, "truncated or damaged|is truncated")


def test_a_version_that_is_not_known_is_named(unpacked: Path, other_portal: Lab1) -> None:
    def change(graph: list[Entity]) -> None:
        next(resource for resource in graph if resource["@id"] == "./")["schemaVersion"] = (
            "tessera-case-9"
        )

    metadata_change(unpacked, change)
    refused(
        other_portal, unpacked, "version tessera-case-9; this portal reads version tessera-case-1"
    )


def test_metadata_that_name_a_file_twice_or_without_hash_are_refused(
    unpacked: Path, other_portal: Lab1
) -> None:
    metadata_change(unpacked, lambda graph: graph.append(graph[-1]))
    refused(other_portal, unpacked, "twice")
    metadata_change(unpacked, lambda graph: graph.pop())
    metadata_change(unpacked, lambda graph: graph[-1].update(sha256="0" * 63))
    refused(other_portal, unpacked, "has no SHA-256")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (b'{"a": NaN}', "NaN is not a finite number"),
        (b'{"a": 1e999}', "not a finite number"),
        (b'{"a": "\\u0000"}', "characters that are not allowed"),
        (b'{"a": "\\ud800"}', "characters that are not allowed"),
        (b"[" * (DEPTH + 2) + b"]" * (DEPTH + 2), "nested deeper"),
        (b"[" * 200_000, "not JSON"),
        (b"9" * 5_000, "not JSON"),
        (b"\xff", "not JSON"),
    ],
)
def test_json_that_no_database_stores_is_refused(text: bytes, match: str) -> None:
    with pytest.raises(CrateError, match=f"here: .*{match}"):
        json_checked(text, "here")


def test_a_line_without_end_is_refused(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.interop.rocrate.formats.reader.LINE_BYTES", 2000)
    file_put(unpacked, "records/rois.jsonl", b"x" * 5000)
    with (
        pytest.raises(CrateError, match=r"ro-crate-metadata.json: longer|line of more"),
        CrateReader(unpacked) as crate,
    ):
        list(crate.rows("records/rois.jsonl"))


OTHER = str(uuid.UUID(int=7))


@pytest.mark.parametrize(
    ("table", "change", "match"),
    [
        ("case", {"age_band": "young"}, "age_band: young is not one of the allowed values"),
        ("case", {"accession": "x" * 65}, "accession: "),
        ("case", {"accession": 5}, "accession: 5 is of the wrong type"),
        ("case", {"more": 1}, "unknown column more"),
        ("case", {"tags": {}}, "tags: expected a JSON list"),
        ("case", {"id": OTHER}, "the one case that the crate holds"),
        ("assets", {"sha256": "../../x"}, "no SHA-256"),
        ("assets", {"size_bytes": 1}, "not the file that its record describes"),
        ("canvases", {"case_id": OTHER}, "another case than the crate"),
        ("canvases", {"id": OTHER}, "no image, video or mosaic"),
        ("slides", {"asset_id": OTHER}, "belongs to no slide and no video"),
        ("slides", {"canvas_id": OTHER}, "its canvas belongs to something else"),
        ("labels", {"color": "red;}"}, ""),
        ("rois", {"canvas_id": OTHER}, f"refers to {OTHER}"),
        ("rois", {"label_id": OTHER}, f"refers to {OTHER}"),
        ("rois", {"left": "nan"}, "left: nan is of the wrong type"),
        ("rois", {"geometry": {"type": "Point"}}, "geometry"),
        ("rois", {"version": -1}, "version: "),
        ("roi_revisions", {"roi_id": OTHER}, f"refers to {OTHER}"),
        ("mosaics", {"video_id": OTHER}, f"refers to {OTHER}"),
        ("mosaic_components", {"layers": ["x"]}, "layers: expected a list of objects"),
        ("mosaic_frames", {"mosaic_id": OTHER}, f"refers to {OTHER}"),
        ("embeddings", {"vector": "AAAA"}, "expected 4 finite numbers"),
        ("embeddings", {"vector": "%"}, "expected base64"),
    ],
)
def test_a_row_that_is_not_as_it_should_be_is_named(
    unpacked: Path, other_portal: Lab1, table: str, change: Entity, match: str
) -> None:
    if table == "labels":  # of the one in use
        used = json.loads((unpacked / "records" / "rois.jsonl").read_text())["label_id"]
        rows = (unpacked / "records" / "labels.jsonl").read_text().splitlines()
        at = next(n for n, row in enumerate(rows) if json.loads(row)["id"] == used)
        row_change(unpacked, table, lambda row: row.update(change), at)
        refused(other_portal, unpacked, "its parent or its colour is not valid")
        row_change(
            unpacked, table, lambda row: row.update(color="#112233", parent_id=row["id"]), at
        )
        refused(other_portal, unpacked, "its parent or its colour is not valid")
        return
    at = 0
    if table == "canvases":  # their ids, and so their order, are by chance
        canvases = (unpacked / "records" / "canvases.jsonl").read_text().splitlines()
        at = next(n for n, row in enumerate(canvases) if json.loads(row)["kind"] == "slide")
    row_change(unpacked, table, lambda row: row.update(change), at)
    refused(other_portal, unpacked, match)


@pytest.mark.parametrize("path", ["assets/x", "derived/../identity.json", "/etc/passwd", ""])
def test_paths_of_a_crate_lead_nowhere(unpacked: Path, other_portal: Lab1, path: str) -> None:
    rows = (unpacked / "records" / "canvases.jsonl").read_text().splitlines()
    at = next(n for n, row in enumerate(rows) if json.loads(row)["kind"] == "mosaic")
    row_change(unpacked, "canvases", lambda row: row.update(pixels_path=path), at)
    refused(other_portal, unpacked, "is not a file of its mosaic")


def test_paths_and_grids_of_an_image_are_ignored(unpacked: Path, other_portal: Lab1) -> None:
    rows = (unpacked / "records" / "canvases.jsonl").read_text().splitlines()
    at = next(n for n, row in enumerate(rows) if json.loads(row)["kind"] == "slide")
    wrong = {"pixels_path": "identity.json", "thumbnail_path": "/etc/passwd", "levels": [{}]}
    row_change(unpacked, "canvases", lambda row: row.update(wrong), at)
    case_import(source=unpacked, lab=other_portal.lab, user=other_portal.manager)
    canvas = Canvas.objects.get(kind="slide")
    assert canvas.pixels_path.startswith("derived/") and canvas.levels == []
    assert canvas.thumbnail_path == ""


def test_an_unreadable_original_is_refused(unpacked: Path, other_portal: Lab1) -> None:
    data = b"#!/bin/sh\n" * 100
    sha256 = hashlib.sha256(data).hexdigest()
    before: list[str] = []

    def change(row: Entity) -> None:
        before.append(row["sha256"])
        row.update(sha256=sha256, size_bytes=len(data))

    row_change(unpacked, "assets", change)
    (unpacked / "originals" / before[0]).unlink()
    metadata_change(unpacked, lambda graph: _drop(graph, f"originals/{before[0]}"))
    file_put(unpacked, f"originals/{sha256}", data)
    refused(other_portal, unpacked, "was not stored")


def _drop(graph: list[Entity], name: str) -> None:
    graph[:] = [resource for resource in graph if resource["@id"] != name]


@pytest.mark.parametrize(
    ("file", "match"),
    [
        ("run.sh", "is not a file of a mosaic"),
        ("layer-count.png", "layer-count.png"),
        ("mosaic.tif", "mosaic.tif"),
    ],
)
def test_pictures_of_a_mosaic_are_opened_in_the_sandbox_first(
    unpacked: Path, other_portal: Lab1, file: str, match: str
) -> None:
    (folder,) = (unpacked / "mosaics").iterdir()
    file_put(unpacked, f"mosaics/{folder.name}/{file}", b"no picture at all")
    refused(other_portal, unpacked, match)


@pytest.mark.slow
def test_two_rows_of_one_id_are_refused(unpacked: Path, other_portal: Lab1) -> None:
    for table in ("slides", "rois"):
        name = f"records/{table}.jsonl"
        data = (unpacked / name).read_bytes()
        file_put(unpacked, name, data * 2)
        refused(other_portal, unpacked, "twice")
        file_put(unpacked, name, data)

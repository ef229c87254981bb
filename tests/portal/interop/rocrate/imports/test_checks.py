"""Rows that a page would stumble over, and ids that reach for what others have, are refused."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.annotations.models import Roi
from portal.archive.models import Asset, Case, Slide, Video
from portal.archive.storage import files as storage
from portal.core.errors import ConflictError
from portal.core.storage_layout import root as storage_root
from portal.interop.rocrate.services.imports import checks
from portal.interop.rocrate.services.imports import rows as import_rows
from portal.interop.rocrate.services.imports.cases import case_import
from portal.labs.models import Lab
from portal.mosaics.models import Mosaic
from portal.mosaics.services.mosaics import frame_id
from tests.portal.interop.conftest import Lab1
from tests.portal.interop.rocrate.imports.conftest import Exported
from tests.portal.interop.rocrate.imports.harm import Entity, file_put, refused, row_change

pytestmark = pytest.mark.slow

SINGULAR = [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
LAYER = {
    "name": "count",
    "png": "layer-count.png",
    "unit": "frames",
    "minimum": 1.0,
    "maximum": 3.0,
    "downsample": 8.0,
}
KEY_FRAME = {"index": 1, "pts": 512, "geometry": None, "outside": True, "by": "hand"}


@pytest.mark.parametrize(
    ("table", "change", "match"),
    [
        ("rois", {"left": -5.0}, "left: it differs from what would be stored"),
        ("rois", {"area_px": 1e300}, "area_px: it differs from what would be stored"),
        ("rois", {"shape": "point"}, "shape: it differs from what would be stored"),
        ("rois", {"version": 0}, "version: expected 1 or more"),
        ("rois", {"frame_index": 3, "frame_pts": 3}, "frame_index: only for a region on a video"),
        ("rois", {"track": [KEY_FRAME]}, "track: only a region on a video can have one"),
        ("rois", {"properties": {"Grade": 2}}, "properties: Grade is not text"),
        ("rois", {"foreign": {"measurements": "x" * 40_000}}, "foreign: longer than"),
        ("roi_revisions", {"track": ["x"]}, "track"),
        ("roi_revisions", {"version": 9}, "version: its region has fewer"),
        ("mosaics", {"config": {"step": "x"}}, "config.step"),
        ("mosaics", {"config": {"start_s": "x"}}, "config.start_s"),
        ("mosaics", {"config": {"step": 1}}, "only what differs from the defaults"),
        ("mosaics", {"gaps": ["x"]}, "gaps: expected a list of objects"),
        ("mosaics", {"engine": {"config_hash": 5}}, "engine: "),
        ("mosaics", {"view_outline": [[0, 0], [1]]}, "view_outline: "),
        ("mosaics", {"view_outline": [["0", "0"]] * 3}, "view_outline: "),
        ("mosaics", {"warnings": [{}]}, "warnings: expected a list of texts"),
        ("mosaic_components", {"spans": [1]}, "spans: expected a list of objects"),
        ("mosaic_components", {"layers": [LAYER | {"name": "../x"}]}, "a name and a unit"),
        ("mosaic_components", {"layers": [LAYER | {"png": "../mosaic.json"}]}, "not a picture"),
        ("mosaic_components", {"layers": [LAYER | {"maximum": "3"}]}, "expected numbers"),
        (
            "mosaic_components",
            {"id": str(uuid.UUID(int=7))},
            "do not match the id of its mosaic",
        ),
        (
            "mosaic_frames",
            {"id": str(uuid.UUID(int=7))},
            "does not match the id of its mosaic",
        ),
        ("mosaic_frames", {"H_mosaic_from_frame": SINGULAR}, "3 x 3 numbers with an inverse"),
        ("mosaic_frames", {"H_mosaic_from_frame": [1, 2]}, "3 x 3 numbers with an inverse"),
        ("mosaic_frames", {"mesh": [[[0.0, 0.0]]]}, "mesh: expected 9 x 9 x 2 numbers"),
        ("mosaic_frames", {"covariance": [["x"]]}, "covariance: expected rows of numbers"),
        ("mosaic_frames", {"component": 4}, "component: the mosaic has no component"),
        ("case", {"created_at": "2020-01-01T00:00:00"}, "created_at: "),
        ("case", {"created_at": "0001-01-01T00:00:00+14:00"}, "created_at: "),
    ],
)
def test_crates_the_portal_cannot_have_written_are_refused(
    unpacked: Path, other_portal: Lab1, table: str, change: Entity, match: str
) -> None:
    row_change(unpacked, table, lambda row: row.update(change))
    refused(other_portal, unpacked, match)


def test_the_pyramid_of_a_mosaic_has_the_size_of_its_canvas(
    unpacked: Path, other_portal: Lab1
) -> None:
    rows = (unpacked / "records" / "canvases.jsonl").read_text().splitlines()
    at = next(n for n, row in enumerate(rows) if json.loads(row)["kind"] == "mosaic")
    row_change(unpacked, "canvases", lambda row: row.update(height_px=row["height_px"] - 1), at)
    refused(other_portal, unpacked, "is not the pyramid of its canvas")


def test_a_mosaic_cannot_claim_the_canvas_id_of_an_image(
    unpacked: Path, other_portal: Lab1
) -> None:
    """The id of an image that is being prepared is known to whoever may see it."""
    other = str(uuid.uuid5(uuid.UUID(int=7), "canvas"))
    rows = (unpacked / "records" / "canvases.jsonl").read_text().splitlines()
    at = next(n for n, row in enumerate(rows) if json.loads(row)["kind"] == "mosaic")
    row_change(unpacked, "canvases", lambda row: row.update(id=other), at)
    row_change(unpacked, "mosaic_components", lambda row: row.update(canvas_id=other))
    row_change(unpacked, "mosaics", lambda row: row.update(canvas_id=other))
    refused(other_portal, unpacked, "do not match the id of its mosaic")


def _called(folder: Path, old: str, new: str) -> None:
    """The whole crate with another id; what follows from it is not changed."""
    for path in (folder / "records").iterdir():
        data = path.read_bytes()
        if old.encode() in data:
            file_put(folder, f"records/{path.name}", data.replace(old.encode(), new.encode()))


def test_derivatives_of_an_image_of_another_lab_are_unreachable(
    unpacked: Path, exported: Exported, other_portal: Lab1
) -> None:
    """Derived folders are named by an id that does not show its kind."""
    video = exported.rows["videos"][0]["id"]
    other = Lab.objects.create(name="Other", slug="other")
    case = Case.objects.create(lab=other, accession="THEIRS")
    asset = Asset.objects.create(lab=other, sha256="a" * 64, size_bytes=1, media_type="x")
    slide = Slide.objects.create(pk=video, lab=other, case=case, asset=asset, name="theirs")
    folder = storage.derived_folder(slide.pk)
    folder.mkdir(parents=True)
    (folder / "thumbnail.jpg").write_bytes(b"theirs")
    with pytest.raises(ConflictError, match="ids") as refused:
        case_import(source=unpacked, lab=other_portal.lab, user=other_portal.manager)
    assert refused.value.details == {} and video not in refused.value.message
    assert not Video.objects.exists() and not Mosaic.objects.exists()
    assert (folder / "thumbnail.jpg").read_bytes() == b"theirs"


def test_no_two_of_slides_videos_and_mosaics_have_one_id(
    unpacked: Path, exported: Exported, other_portal: Lab1
) -> None:
    slide, video = (exported.rows[table][0]["id"] for table in ("slides", "videos"))
    _called(unpacked, video, slide)
    refused(other_portal, unpacked, f"{slide} is the id of two")


def test_a_title_is_one_that_could_be_given_here(unpacked: Path, other_portal: Lab1) -> None:
    row_change(unpacked, "slides", lambda row: row.update(name="../a\\b/\u202eevil\n name "))
    case_import(source=unpacked, lab=other_portal.lab, user=other_portal.manager)
    assert Slide.objects.get().name == "evil name"


def _staged(portal: Lab1, exported: Exported) -> Path:
    case_id = exported.rows["case"][0]["id"]
    return storage_root() / "scratch" / f"crate-{portal.lab.pk}-{case_id}"


def test_scratch_files_are_verified_by_hash(
    unpacked: Path, exported: Exported, other_portal: Lab1
) -> None:
    """Files of the right length but other content, left by an earlier import, are replaced."""
    mosaic = exported.rows["mosaics"][0]["id"]
    name = next(file for file in exported.files if file.startswith("originals/"))
    staged = _staged(other_portal, exported)
    for item in (name, f"mosaics/{mosaic}/mosaic.json"):
        (staged / item).parent.mkdir(parents=True, exist_ok=True)
        (staged / item).write_bytes(bytes(len(exported.files[item])))
    case_import(source=unpacked, lab=other_portal.lab, user=other_portal.manager)
    sha256 = name.rsplit("/", 1)[-1]
    assert storage.asset_path(other_portal.lab.pk, sha256).read_bytes() == exported.files[name]
    manifest = storage.derived_folder(uuid.UUID(mosaic)) / "mosaic.json"
    assert manifest.read_bytes() == exported.files[f"mosaics/{mosaic}/mosaic.json"]


def test_halves_of_files_are_not_published(
    unpacked: Path, exported: Exported, other_portal: Lab1
) -> None:
    mosaic = exported.rows["mosaics"][0]["id"]
    folder = _staged(other_portal, exported) / "mosaics" / mosaic
    folder.mkdir(parents=True)
    (folder / ".mosaic-12345678.tif").write_bytes(b"half")
    case_import(source=unpacked, lab=other_portal.lab, user=other_portal.manager)
    names: list[Any] = [path.name for path in storage.derived_folder(uuid.UUID(mosaic)).iterdir()]
    assert "mosaic.tif" in names and ".mosaic-12345678.tif" not in names


def _many(folder: Path, count: int) -> int:
    """Add regions with the history of the first; returns rows of both."""
    rows: dict[str, list[Entity]] = {}
    for table in ("rois", "roi_revisions"):
        text = (folder / "records" / f"{table}.jsonl").read_text()
        rows[table] = [json.loads(line) for line in text.splitlines()]
    first = rows["rois"][0]
    history = [revision for revision in rows["roi_revisions"] if revision["roi_id"] == first["id"]]
    for number in range(count):
        roi_id = str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))
        rows["rois"].append(first | {"id": roi_id})
        rows["roi_revisions"] += [
            entry | {"id": str(uuid.uuid4()), "roi_id": roi_id} for entry in history
        ]
    for table, result in rows.items():
        lines = b"".join(json.dumps(item).encode() + b"\n" for item in result)
        file_put(folder, f"records/{table}.jsonl", lines)
    return sum(map(len, rows.values()))


def test_many_regions_take_few_statements_and_are_checked_once(
    unpacked: Path, other_portal: Lab1, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uploads of the lab wait while they are written."""
    total = _many(unpacked, 200)
    checked: list[str] = []
    check = import_rows.roi_check

    def noted(row: Any, canvas: Any, frame_index: Any, frames: int, where: str) -> None:
        checked.append(where)
        check(row, canvas, frame_index, frames, where)

    monkeypatch.setattr(import_rows, "roi_check", noted)
    with CaptureQueriesContext(connection) as requested:
        case_import(source=unpacked, lab=other_portal.lab, user=other_portal.manager)
    written = [
        request["sql"]
        for request in requested
        if request["sql"].startswith('INSERT INTO "annotations_roi')
    ]
    assert len(written) <= total / 25  # a thousand parameters, of which a region takes 27
    assert len(checked) == len(set(checked)) == total
    first = json.loads((unpacked / "records" / "rois.jsonl").read_text().splitlines()[0])
    assert Roi.objects.count() == 201
    assert {str(roi.created_at.isoformat()) for roi in Roi.objects.all()} == {first["created_at"]}


def test_a_frame_that_the_video_does_not_have_is_named(
    unpacked: Path, exported: Exported, other_portal: Lab1, monkeypatch: pytest.MonkeyPatch
) -> None:
    video = exported.rows["videos"][0]
    count = video["frame_count"]

    def onto_the_video(row: Entity) -> None:
        row |= {"canvas_id": video["canvas_id"], "frame_index": count, "frame_pts": 0}

    before = (unpacked / "records" / "rois.jsonl").read_bytes()
    row_change(unpacked, "rois", onto_the_video)
    refused(other_portal, unpacked, f"frame {count} is not one of the {count} frames of its video")
    monkeypatch.setattr(checks, "require_as_stored", lambda *_, **__: None)
    row_change(unpacked, "rois", lambda row: row.update(frame_index=0, track=[_key(count)]))
    refused(other_portal, unpacked, f"frame {count} is not one of the {count} frames of its video")
    file_put(unpacked, "records/rois.jsonl", before)
    mosaic = uuid.UUID(exported.rows["mosaics"][0]["id"])
    beyond = {"index": count, "id": str(frame_id(mosaic, count))}
    row_change(unpacked, "mosaic_frames", lambda row: row.update(beyond))
    refused(other_portal, unpacked, f"frame {count} is not one of the {count} frames of its video")


def _key(index: int) -> Entity:
    return KEY_FRAME | {"index": index, "pts": 512 * index}

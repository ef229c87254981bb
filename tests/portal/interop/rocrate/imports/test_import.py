"""A case that was exported, brought into another portal: the same ids, all or nothing."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from ml.errors import CorruptFileError
from portal.annotations.models import Label, Roi
from portal.annotations.services.rois import roi_update
from portal.archive import inspection
from portal.archive.models import Asset, Canvas, Case, ItemState, Slide, Upload
from portal.archive.services.items import item_retry
from portal.archive.storage import files as storage
from portal.audit.models import AuditEntry
from portal.core.errors import ConflictError, ForbiddenError, StorageFullError
from portal.core.storage_layout import root as storage_root
from portal.embeddings.models import Embedding, Encoder
from portal.interop.rocrate.formats import reader
from portal.interop.rocrate.selectors.exports import case_whole, rows_of
from portal.interop.rocrate.services.imports import files as import_files
from portal.interop.rocrate.services.imports.cases import case_import
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab, Membership, Role, User
from portal.mosaics.models import Mosaic
from tests.clients import client_of
from tests.portal.interop.conftest import Lab1
from tests.portal.interop.rocrate.imports.conftest import Exported, all_prepared, case_back

HERE = {"lab_id", "created_by_id", "author_id", "updated_at"}  # of the importing lab, or nobody
REMADE = {  # as docs/guide/rest/whole-cases.md says
    "assets": {"removed"},
    "labels": {"label_set_id", "key"},
    "embeddings": {"id"},
    "encoders": {"created_at"},  # the one that was here
}


def _rows(portal: Lab1, case_id: Any) -> dict[str, list[dict[str, Any]]]:
    content = case_whole(user=portal.manager, case=Case.objects.get(pk=case_id))
    return {name: list(rows_of(query)) for name, query in content.tables.items()}


def _case_id(exported: Exported) -> str:
    return str(exported.rows["case"][0]["id"])


def test_a_case_comes_back_with_all_that_it_had(exported: Exported, other_portal: Lab1) -> None:
    done = case_back(other_portal, exported.path)
    assert (done.is_new, done.originals, done.left_out) == (True, 2, 0)
    all_prepared()
    rows = _rows(other_portal, _case_id(exported))
    used = {row["label_id"] for row in exported.rows["rois"]}
    exported.rows["labels"] = [row for row in exported.rows["labels"] if row["id"] in used]
    rows["labels"] = [row for row in rows["labels"] if row["id"] in used]
    for row in rows["canvases"]:  # an original is in a folder of its lab
        old = str(exported.rows["case"][0]["lab_id"])
        row["pixels_path"] = row["pixels_path"].replace(str(other_portal.lab.pk), old)
        if row["kind"] == "video":
            assert row["pixels_path"].startswith("assets/")
    for row in (*exported.rows["videos"], *rows["videos"]):
        row["media_path"] = row["media_path"].rsplit("/", 1)[-1]
    for table, before in exported.rows.items():
        left_out = HERE | REMADE.get(table, set())
        stored = [{k: v for k, v in row.items() if k not in left_out} for row in rows[table]]
        assert stored == [{k: v for k, v in row.items() if k not in left_out} for row in before]
        assert before, table
    for name, data in exported.files.items():
        folder, _, rest = name.partition("/")
        if folder == "originals":
            assert storage.asset_path(other_portal.lab.pk, rest).read_bytes() == data
        elif folder == "mosaics":
            assert (storage_root() / "derived" / rest).read_bytes() == data
    assert not list((storage_root() / "scratch").glob("crate-*"))
    entry = AuditEntry.objects.get(action="case.imported")
    assert (entry.lab_id, entry.actor_id) == (other_portal.lab.pk, other_portal.manager.pk)


def test_the_author_of_a_record_is_a_member_of_that_id_or_empty(
    exported: Exported, other_portal: Lab1
) -> None:
    roi = exported.rows["rois"][0]
    assert roi["created_by_id"] is not None
    case_back(other_portal, exported.path)
    assert Roi.objects.get(pk=roi["id"]).created_by_id is None


def test_a_member_with_the_id_of_the_author_becomes_the_author(
    exported: Exported, other_portal: Lab1
) -> None:
    roi = exported.rows["rois"][0]
    author = User.objects.create_user("a@elsewhere.example", "correct horse battery")
    User.objects.filter(pk=author.pk).update(id=roi["created_by_id"])
    author = User.objects.get(pk=roi["created_by_id"])
    Membership.objects.create(user=author, lab=other_portal.lab, role=Role.ANNOTATOR)
    case_back(other_portal, exported.path)
    assert Roi.objects.get(pk=roi["id"]).created_by_id == author.pk
    assert set(Upload.objects.values_list("created_by_id", flat=True)) == {other_portal.manager.pk}


def test_pixels_of_an_unprepared_image_are_not_served(
    exported: Exported, other_portal: Lab1
) -> None:
    case_back(other_portal, exported.path)
    slide = Slide.objects.get()
    assert (slide.state, slide.canvas_id) == (ItemState.PREPARING, None)

    client = client_of(other_portal.manager)
    canvases = [row["id"] for row in exported.rows["canvases"] if row["kind"] != "mosaic"]
    for pk in canvases:
        for rest in ("tiles/0/0/0.jpg", "thumbnail/", "frames/0/"):
            status = client.get(f"/api/v1/canvases/{pk}/{rest}").status_code
            assert status in (400, 404, 503), (pk, rest, status)
    assert client.get(f"/cases/{_case_id(exported)}/").status_code == 200


def test_a_second_import_changes_nothing(exported: Exported, other_portal: Lab1) -> None:
    case_back(other_portal, exported.path)
    all_prepared()
    before = _rows(other_portal, _case_id(exported))
    assert not case_back(other_portal, exported.path).is_new
    assert _rows(other_portal, _case_id(exported)) == before


def test_local_changes_are_reported_and_remain(exported: Exported, other_portal: Lab1) -> None:
    case_back(other_portal, exported.path)
    roi = Roi.objects.get()
    roi_update(roi=roi, user=other_portal.manager, expected_version=2, changes={"name": "Mine"})
    with pytest.raises(ConflictError, match=f"rois: {roi.pk} is already here with other content"):
        case_back(other_portal, exported.path)
    assert Roi.objects.get().name == "Mine"


@pytest.mark.slow
def test_a_case_of_another_lab_and_a_taken_number_are_refused(
    exported: Exported, other_portal: Lab1
) -> None:
    other = Lab.objects.create(name="Other", slug="other")
    Membership.objects.create(user=other_portal.manager, lab=other, role=Role.MANAGER)
    Case.objects.create(lab=other_portal.lab, accession=exported.rows["case"][0]["accession"])
    with pytest.raises(ConflictError, match="W-1"):
        case_back(other_portal, exported.path)
    case_import(source=exported.path, lab=other, user=other_portal.manager)
    Case.objects.filter(lab=other_portal.lab).delete()
    with pytest.raises(ConflictError, match="ids") as refused:
        case_back(other_portal, exported.path)
    assert refused.value.details == {}
    assert not Case.objects.filter(lab=other_portal.lab).exists()


def test_only_a_manager_of_the_lab_may(exported: Exported, other_portal: Lab1) -> None:
    Membership.objects.filter(user=other_portal.manager).update(role=Role.REVIEWER)
    with pytest.raises(ForbiddenError):
        case_back(other_portal, exported.path)
    assert not Case.objects.exists()


def test_labels_of_the_lab_replace_those_of_the_same_name(
    exported: Exported, other_portal: Lab1
) -> None:
    from portal.annotations.services.labels import label_create

    mine = label_create(lab=other_portal.lab, user=other_portal.manager, name="sWEPT")
    case_back(other_portal, exported.path)
    assert Roi.objects.get().label_id == mine.pk
    assert Label.objects.filter(name__iexact="swept").count() == 1


def test_vectors_of_an_unknown_encoder_are_left_out(exported: Exported, other_portal: Lab1) -> None:
    Encoder.objects.update(config_hash="f" * 64)
    assert case_back(other_portal, exported.path).left_out == 1
    assert not Embedding.objects.exists()


def test_regions_without_a_vector_are_queued_once_their_image_is_prepared(
    exported: Exported, other_portal: Lab1
) -> None:
    Encoder.objects.update(config_hash="f" * 64, is_default=True)
    case_back(other_portal, exported.path)
    assert not Job.objects.filter(kind="canvas_embed").exists()
    all_prepared()
    job = Job.objects.get(kind="canvas_embed")
    assert job.target_id == Roi.objects.get().canvas_id


def test_the_modality_of_images_and_case_stays_as_it_was(
    exported: Exported, other_portal: Lab1
) -> None:
    case_back(other_portal, exported.path)
    assert set(Canvas.objects.values_list("kind", "modality")) == {
        *{("slide", "histology"), ("video", "endoscopy"), ("mosaic", "endoscopy")}
    }
    Canvas.objects.update(modality="endoscopy", is_modality_by_hand=True)
    all_prepared()
    assert set(Canvas.objects.values_list("modality", "is_modality_by_hand")) == {
        ("endoscopy", True)
    }


@pytest.mark.parametrize(("of_file", "expected"), [(None, (0.25, True)), (0.5, (0.5, False))])
def test_an_entered_pixel_size_remains_where_the_file_has_none(
    exported: Exported,
    other_portal: Lab1,
    monkeypatch: pytest.MonkeyPatch,
    of_file: float | None,
    expected: tuple[float, bool],
) -> None:
    case_back(other_portal, exported.path)
    mine = Canvas.objects.filter(kind="slide")
    mine.update(mpp_x=0.25, mpp_y=0.25, is_scaled_by_hand=True)
    look = inspection.slide_inspect

    def inspect(*arguments: Any, **options: Any) -> Any:
        return replace(look(*arguments, **options), mpp_x=of_file, mpp_y=of_file)

    monkeypatch.setattr(inspection, "slide_inspect", inspect)
    all_prepared()
    canvas = mine.get()
    assert (canvas.mpp_x, canvas.is_scaled_by_hand) == expected


def test_an_image_refused_by_the_gate_retains_its_regions(
    exported: Exported, other_portal: Lab1, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise CorruptFileError("it is cut")

    case_back(other_portal, exported.path)
    monkeypatch.setattr(inspection, "slide_inspect", fails)
    job_run(Job.objects.get(kind="slide_ingest").pk)
    slide = Slide.objects.get()
    assert (slide.state, slide.error_message) == (ItemState.FAILED, "It is cut.")
    assert Roi.objects.count() == 1
    monkeypatch.undo()
    item_retry(item=slide, user=other_portal.manager)
    for job in Job.objects.filter(kind="slide_ingest", state=JobState.QUEUED):
        job_run(job.pk)
    slide.refresh_from_db()
    assert slide.canvas_id == Roi.objects.get().canvas_id


class _Killed(BaseException):
    pass


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of files that were taken out of the crate."""
    names: list[str] = []
    take = reader.CrateReader.chunks

    def chunks(self: Any, name: str) -> Iterator[bytes]:
        names.append(name)
        return take(self, name)

    monkeypatch.setattr(reader.CrateReader, "chunks", chunks)
    yield names


@pytest.mark.parametrize("at", [0, 1, 2, 4])
def test_an_import_killed_during_extraction_resumes(
    exported: Exported,
    other_portal: Lab1,
    taken: list[str],
    monkeypatch: pytest.MonkeyPatch,
    at: int,
) -> None:
    take, count = import_files.file_take, 0

    def killed(*arguments: Any) -> None:
        nonlocal count
        if count == at:
            raise _Killed
        count += 1
        take(*arguments)

    monkeypatch.setattr(import_files, "file_take", killed)
    with pytest.raises(_Killed):
        case_back(other_portal, exported.path)
    assert not Case.all_objects.exists() and not Asset.objects.exists()
    monkeypatch.setattr(import_files, "file_take", take)
    taken.clear()
    assert case_back(other_portal, exported.path).is_new
    files = [name for name in taken if not name.startswith("records/")]
    total = sum(not name.startswith(("records/", "ro-crate")) for name in exported.files)
    assert len(files) == total - at  # the child verifies each; what was taken out is not again
    all_prepared()


def test_a_failure_at_the_end_leaves_neither_rows_nor_files(
    exported: Exported, other_portal: Lab1, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise OSError("the machine stopped")

    monkeypatch.setattr("portal.interop.rocrate.services.imports.cases.event_emit", fails)
    with pytest.raises(OSError, match="stopped"):
        case_back(other_portal, exported.path)
    for model in (Case, Canvas, Slide, Roi, Mosaic):
        assert not model._base_manager.exists()
    assert not Asset.objects.exists() and not Job.objects.exists()
    assert not [path for path in (storage_root() / "assets").rglob("*") if path.is_file()]
    assert not list((storage_root() / "derived").glob("*"))
    monkeypatch.undo()
    assert case_back(other_portal, exported.path).is_new


def test_an_import_beyond_the_quota_writes_nothing(
    exported: Exported, other_portal: Lab1, settings: Any
) -> None:
    settings.TESSERA_LAB_QUOTA_BYTES = 1000
    with pytest.raises(StorageFullError):
        case_back(other_portal, exported.path)
    assert [path.name for path in storage_root().rglob("*")] == ["scratch"]  # and it is empty


@pytest.mark.slow
def test_the_command_imports_a_folder(
    unpacked: Path, exported: Exported, other_portal: Lab1, capsys: pytest.CaptureFixture[str]
) -> None:
    who = ("--lab", "elsewhere", "--user", other_portal.manager.email)
    call_command("case_import", str(unpacked), *who)
    assert "2 new originals" in capsys.readouterr().out
    call_command("case_import", str(exported.path), *who)
    assert "everything is already here" in capsys.readouterr().out
    with pytest.raises(CommandError, match="no lab"):
        call_command("case_import", str(unpacked), "--lab", "none", "--user", "x@example")
    with zipfile.ZipFile(exported.path) as crate, pytest.raises(CommandError, match="neither"):
        crate.extract("ro-crate-metadata.json", unpacked.parent)
        call_command("case_import", str(unpacked.parent / "ro-crate-metadata.json"), *who)

"""The whole case as an RO-Crate: every file by its hash, every row by its id, for managers only."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.http.response import HttpResponseBase
from django.test import Client

from portal.annotations.models import Roi, RoiRevision
from portal.annotations.services.rois import roi_create, roi_update
from portal.archive.models import Asset, Case, VocabularyTerm
from portal.archive.services.cases import case_create, case_delete
from portal.archive.storage import files as storage
from portal.audit.models import AuditEntry
from portal.core.storage_layout import entries_of
from portal.embeddings.models import Embedding
from portal.erasure.services.inventory import inventory_of
from portal.interop.rocrate.formats.reader import CrateReader
from portal.interop.rocrate.selectors.exports import case_whole, export_folder
from portal.interop.rocrate.services.exports import case_export_to
from portal.interop.selectors import ICD_O
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab, Membership, Role, User
from portal.reader_studies.services.assignments import ReadingPlan
from portal.reader_studies.services.studies import readings_assign, study_create
from tests.clients import client_of
from tests.portal.interop.conftest import Lab1


def _path(held: Lab1) -> str:
    return f"/api/v1/cases/{held.world.case.pk}/export/"


def _ordered(held: Lab1) -> Job:
    answer = held.client().post(_path(held))
    assert answer.status_code == 202
    job_run(answer.json()["id"])
    return Job.objects.get(pk=answer.json()["id"])


def _body(answer: HttpResponseBase) -> bytes:
    return b"".join(answer.streaming_content)  # type: ignore[attr-defined]


def _rows(crate: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in crate.read(f"records/{name}.jsonl").splitlines()]


@pytest.fixture
def written(held: Lab1) -> zipfile.ZipFile:
    """The crate of a case with a changed region, a vector and a mosaic that was built."""
    made = held.world
    roi = Roi.objects.get(pk=made.roi.pk)
    roi_update(roi=roi, user=held.manager, expected_version=1, changes={"name": "Changed"})
    Embedding.objects.create(
        lab=held.lab,
        encoder=made.encoder,
        roi=made.roi,
        canvas=made.canvas,
        roi_version=2,
        vector=np.arange(4, dtype="<f4").tobytes(),
    )
    folder = storage.derived_folder(made.mosaic.pk)
    (folder / "layers").mkdir(parents=True, exist_ok=True)
    (folder / "layers" / "count.png").write_bytes(b"a layer")
    (folder / "link").unlink(missing_ok=True)
    (folder / "link").symlink_to("/etc/hostname")
    job = _ordered(held)
    assert job.state == JobState.SUCCEEDED, job.error_message
    answer = held.client().get(_path(held))
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
    return zipfile.ZipFile(io.BytesIO(_body(answer)))


def test_the_metadata_names_every_file_with_its_hash_and_size(written: zipfile.ZipFile) -> None:
    document = json.loads(written.read("ro-crate-metadata.json"))
    entities = {item["@id"]: item for item in document["@graph"]}
    assert entities["ro-crate-metadata.json"]["about"] == {"@id": "./"}
    assert entities["ro-crate-metadata.json"]["conformsTo"]["@id"].endswith("/ro/crate/1.1")
    root = entities["./"]
    assert {"name", "description", "datePublished", "license"} <= set(root)
    named = {part["@id"] for part in root["hasPart"]}
    assert named == set(written.namelist()) - {"ro-crate-metadata.json"}
    for name in named:
        data = written.read(name)
        assert entities[name]["sha256"] == hashlib.sha256(data).hexdigest()
        assert entities[name]["contentSize"] == str(len(data))


def test_the_metadata_has_the_codes_of_the_vocabulary_of_the_cases_lab(held: Lab1) -> None:
    Case.objects.filter(pk=held.world.case.pk).update(organ="Caecum", diagnosis="Adenoma")
    other = Lab.objects.create(name="Elsewhere", slug="elsewhere")
    for lab, code in ((other, "C99.9"), (held.lab, "C18.0")):
        VocabularyTerm.objects.create(lab=lab, field="organ", term="Caecum", code=code)
    VocabularyTerm.objects.create(lab=other, field="diagnosis", term="Adenoma", code="8140/0")
    assert _ordered(held).state == JobState.SUCCEEDED
    crate = zipfile.ZipFile(io.BytesIO(_body(held.client().get(_path(held)))))
    graph = json.loads(crate.read("ro-crate-metadata.json"))["@graph"]
    (term,) = [resource for resource in graph if resource["@type"] == "DefinedTerm"]
    assert (term["name"], term["termCode"], term["inDefinedTermSet"]) == ("Caecum", "C18.0", ICD_O)
    (root,) = [resource for resource in graph if resource["@id"] == "./"]
    assert root["about"] == [{"@id": term["@id"]}]


def test_rows_have_the_ids_they_have_here(written: zipfile.ZipFile, held: Lab1) -> None:
    made = held.world
    ids = {
        name: [row["id"] for row in _rows(written, name)]
        for name in ("case", "canvases", "slides", "videos", "rois", "mosaics")
    }
    assert ids["case"] == [str(made.case.pk)]
    assert set(ids["canvases"]) == {str(made.canvas.pk), str(made.video.canvas_id)}
    assert (ids["slides"], ids["videos"]) == ([str(made.slide.pk)], [str(made.video.pk)])
    assert (ids["rois"], ids["mosaics"]) == ([str(made.roi.pk)], [str(made.mosaic.pk)])
    history = sorted(_rows(written, "roi_revisions"), key=lambda row: row["version"])
    assert [row["name"] for row in history] == ["", "Changed"]
    first = RoiRevision.objects.get(roi=made.roi, version=1)
    assert (history[0]["id"], history[0]["geometry"]) == (str(first.pk), first.geometry)
    (embedding,) = _rows(written, "embeddings")
    vector = np.frombuffer(base64.b64decode(embedding["vector"]), "<f4")
    assert (embedding["roi_id"], vector.tolist()) == (str(made.roi.pk), [0, 1, 2, 3])
    assert [row["id"] for row in _rows(written, "encoders")] == [str(made.encoder.pk)]
    assert str(made.label.pk) in {row["id"] for row in _rows(written, "labels")}


def test_originals_and_mosaics_are_byte_for_byte_and_links_stay_out(
    written: zipfile.ZipFile, held: Lab1
) -> None:
    for item in (held.world.slide, held.world.video):
        sha256 = item.asset.sha256
        stored = storage.asset_path(held.lab.pk, sha256).read_bytes()
        assert written.read(f"originals/{sha256}") == stored
    of_mosaic = [name for name in written.namelist() if name.startswith("mosaics/")]
    assert of_mosaic == [f"mosaics/{held.world.mosaic.pk}/layers/count.png"]
    assert written.read(of_mosaic[0]) == b"a layer"


def test_a_broken_download_resumes(written: zipfile.ZipFile, held: Lab1) -> None:
    client = held.client()
    complete = client.get(_path(held))
    data = _body(complete)
    rest = client.get(_path(held), headers={"Range": "bytes=100-", "If-Range": complete["ETag"]})
    assert rest.status_code == 206
    assert _body(rest) == data[100:]


def test_an_export_is_not_requested_twice_and_is_deleted_by_an_erasure(held: Lab1) -> None:
    storage.folder_drop(export_folder(held.world.case.pk))
    first = held.client().post(_path(held)).json()["id"]
    assert held.client().post(_path(held)).json()["id"] == first
    assert held.client().get(_path(held)).status_code == 404  # it is not written yet
    export_folder(held.world.case.pk).mkdir(parents=True, exist_ok=True)
    inventory = inventory_of(held.world.case.lab_id, [held.world.case.pk])
    assert export_folder(held.world.case.pk) in entries_of(inventory.ids)


def test_a_damaged_original_is_not_sent_as_complete(held: Lab1) -> None:
    asset = Asset.objects.get(pk=held.world.slide.asset_id)
    path = storage.asset_path(held.lab.pk, asset.sha256)
    data = path.read_bytes()
    before = held.client().get(_path(held)).status_code
    path.chmod(0o644)
    path.write_bytes(b"\0" + data[1:])
    try:
        job = _ordered(held)
    finally:
        path.write_bytes(data)
    assert (job.state, job.error_code) == (JobState.FAILED, "damaged")
    assert held.client().get(_path(held)).status_code == before


@pytest.mark.parametrize("role", [Role.REVIEWER, None])
def test_only_managers_see_exports_and_each_only_their_own(
    held: Lab1, written: zipfile.ZipFile, role: Role | None
) -> None:
    person = User.objects.create_user(f"{role}@interop.example", "correct horse battery")
    page = f"/cases/{held.world.case.pk}/"
    export = f"{page}export/"
    client = Client()
    if role is not None:
        Membership.objects.create(user=person, lab=held.lab, role=role)
    client.force_login(person)
    refused = 403 if role else 404
    assert [client.get(export).status_code, client.post(export).status_code] == [refused] * 2
    if role:
        assert export not in client.get(page).content.decode()
        Membership.objects.filter(user=person).update(role=Role.MANAGER)
        assert client.get(export).status_code == 404  # the other manager's is not theirs
    manager = client_of(held.manager)
    assert "Download (" in manager.get(page).content.decode()
    assert zipfile.is_zipfile(io.BytesIO(_body(manager.get(export))))


@pytest.mark.parametrize("name", ["crate", "crate.zip"])
def test_the_command_exports_a_folder_or_a_zip(held: Lab1, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    who = ("--lab", "interop", "--user", held.manager.email)
    call_command("case_export", "W-1", *who, "--out", str(out))
    assert out.is_dir() == (name == "crate")
    with CrateReader(out) as crate:
        crate.verify()
        assert crate.identifier == f"urn:uuid:{held.world.case.pk}"
        assert [row["id"] for row in crate.rows("records/rois.jsonl")] == [str(held.world.roi.pk)]
        assert {f"originals/{a}" for a in Asset.objects.values_list("sha256", flat=True)} <= (
            crate.files.keys()
        )
    assert [path.name for path in tmp_path.iterdir()] == [name]
    entry = AuditEntry.objects.get(action="case.downloaded")
    assert (entry.actor_id, entry.object_id) == (held.manager.pk, held.world.case.pk)
    with pytest.raises(CommandError, match="already exists"):
        call_command("case_export", "W-1", *who, "--out", str(out))
    Membership.objects.filter(user=held.manager).update(role=Role.REVIEWER)
    with pytest.raises(CommandError, match="manager"):
        call_command("case_export", "W-1", *who, "--out", str(tmp_path / "more"))
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["crate", "crate.zip"])
def test_the_export_is_on_disk_before_its_job_is_done(
    held: Lab1, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    synced: set[int] = set()
    sync = os.fsync

    def noted(file: int) -> None:
        synced.add(os.fstat(file).st_ino)
        sync(file)

    monkeypatch.setattr(os, "fsync", noted)
    case_export_to(
        user=held.manager, case=held.world.case, out=tmp_path / name, as_folder=name == "crate"
    )
    written = [tmp_path, tmp_path / name, *(tmp_path / name).rglob("*")]
    assert [path for path in written if path.stat().st_ino not in synced] == []


def test_a_manager_who_reads_blindly_exports_only_visible_rois(held: Lab1) -> None:
    made = held.world
    other = User.objects.create_user("other@interop.example", "correct horse battery")
    Membership.objects.create(user=other, lab=held.lab, role=Role.MANAGER)
    boss = User.objects.create_user("boss@interop.example", "correct horse battery")
    Membership.objects.create(user=boss, lab=held.lab, role=Role.MANAGER)
    study = study_create(lab=held.lab, user=boss, name="Blind")
    plan = ReadingPlan(canvases=[made.canvas], people=[held.manager, other])
    readings_assign(study=study, user=boss, plan=plan)
    ring = [[500, 10], [600, 10], [600, 90], [500, 90], [500, 10]]
    drawn = {
        person.pk: roi_create(
            canvas=made.canvas,
            user=person,
            geometry={"type": "Polygon", "coordinates": [ring]},
            label=made.label,
        ).roi
        for person in (held.manager, other)
    }
    theirs = drawn[other.pk]
    Embedding.objects.create(
        lab=held.lab,
        encoder=made.encoder,
        roi=theirs,
        canvas=made.canvas,
        roi_version=1,
        vector=np.zeros(4, "<f4").tobytes(),
    )
    assert theirs in case_whole(user=other, case=made.case).tables["rois"]
    job = _ordered(held)
    assert job.state == JobState.SUCCEEDED, job.error_message
    crate = zipfile.ZipFile(io.BytesIO(_body(held.client().get(_path(held)))))
    ids = {row["id"] for row in _rows(crate, "rois")}
    assert str(drawn[held.manager.pk].pk) in ids
    for name in crate.namelist():
        if name.startswith("records/"):
            assert str(theirs.pk) not in crate.read(name).decode(), name


def test_many_cases_are_exported_by_one_job(held: Lab1) -> None:
    case = held.world.case
    other = case_create(lab=held.lab, user=held.manager, accession="M 2")
    gone = case_create(lab=held.lab, user=held.manager, accession="M-3")
    ids = [str(item.pk) for item in (case, other, gone)]
    answer = held.client().post(
        "/api/v1/cases/bulk/export/", {"cases": ids}, content_type="application/json"
    )
    assert answer.status_code == 202
    case_delete(case=gone, user=held.manager)
    job = Job.objects.get(pk=answer.json()["id"])
    job_run(job.pk)
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED, job.error_message
    assert (job.result["written"], job.result["left_out"]) == (2, 1)
    browser = client_of(held.manager)
    page = browser.get(f"/cases/exports/{job.pk}/").content.decode()
    assert "2 done, 1 could not be exported" in page and "M 2" in page and "M-3" not in page
    file = held.client().get(f"/api/v1/cases/bulk/export/{job.pk}/")
    assert (file.status_code, file["Content-Type"]) == (200, "application/zip")
    outer = zipfile.ZipFile(io.BytesIO(_body(file)))
    assert outer.testzip() is None
    assert len(outer.namelist()) == 2
    name = f"m-2-{str(other.pk)[:8]}.zip"
    inner = zipfile.ZipFile(io.BytesIO(outer.read(name)))
    assert _rows(inner, "case")[0]["accession"] == "M 2"
    taken = AuditEntry.objects.filter(action="case.downloaded", object_id__in=ids)
    assert {str(item.object_id) for item in taken} == {str(case.pk), str(other.pk)}


def test_many_cases_are_exported_by_managers_of_their_lab_alone(held: Lab1) -> None:
    path, body = "/api/v1/cases/bulk/export/", {"cases": [str(held.world.case.pk)]}
    Membership.objects.filter(user=held.manager).update(role=Role.REVIEWER)
    refused = held.client().post(path, body, content_type="application/json")
    assert refused.status_code == 403
    Membership.objects.filter(user=held.manager).update(role=Role.MANAGER)
    order = held.client().post(path, body, content_type="application/json").json()
    job_run(order["id"])
    Membership.objects.filter(user=held.manager).update(role=Role.VIEWER)
    assert held.client().get(f"{path}{order['id']}/").status_code == 404

"""A crate sent over REST: asked for, worked on by a job, refused and asked for again."""

from __future__ import annotations

import base64
import fcntl
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from portal.annotations.models import Roi
from portal.archive import storage
from portal.archive.models import Asset, Case, Slide, Upload, UploadState
from portal.archive.services import quota_used_bytes, storage_sweep
from portal.audit.models import AuditEntry
from portal.core.disk import MESSAGE
from portal.core.errors import StorageFullError
from portal.exchange.services import import_files
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run
from portal.keeping.services.erasing.inventory import inventory_of
from portal.labs.models import Lab, Membership, Role, User
from tests.portal.exchange.conftest import Lab1
from tests.portal.exchange.importing.conftest import Exported

URL = "/api/v1/uploads/"
TUS = {"Tus-Resumable": "1.0.0"}


def _meta(**said: Any) -> str:
    return ",".join(f"{k} {base64.b64encode(str(v).encode()).decode()}" for k, v in said.items())


def _client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def browser(elsewhere: Lab1) -> Client:
    """Of the manager."""
    return _client(elsewhere.manager)


def _begun(browser: Client, lab: Lab, size_bytes: int, **headers: str) -> Any:
    sent = {"Upload-Length": str(size_bytes), **headers}
    sent["Upload-Metadata"] = _meta(lab=lab.pk, filename="W-1.zip")
    return browser.post(URL, headers=TUS | sent)


def _piece(browser: Client, address: str, offset: int, data: bytes) -> Any:
    return browser.generic(
        "PATCH",
        address,
        data,
        content_type="application/offset+octet-stream",
        headers=TUS | {"Upload-Offset": str(offset)},
    )


def _sent(browser: Client, lab: Lab, data: bytes) -> str:
    """In two pieces; returns its address."""
    begun = _begun(browser, lab, len(data))
    assert begun.status_code == 201, begun.content
    half = len(data) // 2
    for offset, piece in ((0, data[:half]), (half, data[half:])):
        assert _piece(browser, begun["Location"], offset, piece).status_code == 204
    return str(begun["Location"])


def _asked(browser: Client, address: str) -> Job:
    answer = browser.post(f"{address}import/")
    assert answer.status_code == 202, answer.content
    assert answer["Location"].endswith(f"/jobs/{answer.json()['id']}/")
    return Job.objects.get(pk=answer.json()["id"])


def _run(job: Job) -> Job:
    job_run(job.pk)
    job.refresh_from_db()
    return job


def _nothing_came() -> None:
    assert not Case.everything.exists() and not Asset.objects.exists()
    assert not Job.objects.exclude(kind="case_import").exists()


def test_a_case_comes_in_and_the_job_tells_what_of(
    browser: Client,
    elsewhere: Lab1,
    exported: Exported,
    django_capture_on_commit_callbacks: Any,
) -> None:
    address = _sent(browser, elsewhere.lab, exported.path.read_bytes())
    upload = Upload.objects.get()
    assert not Job.objects.exists()  # it waits to be asked for
    assert browser.get(address).json()["case"] is None
    job = _asked(browser, address)
    assert (job.target_id, job.target_name) == (upload.pk, "W-1.zip")
    assert browser.get(address).json()["state"] == "checking"
    assert _asked(browser, address).pk == job.pk  # the one under way
    with django_capture_on_commit_callbacks(execute=True):
        _run(job)
    assert job.state == JobState.SUCCEEDED, job.error_message
    case_id = exported.rows["case"][0]["id"]
    assert job.result == {
        "case_id": case_id,
        "originals": 2,
        "slides": 1,
        "videos": 1,
        "mosaics": 1,
        "rois": 1,
        "roi_revisions": 2,
        "labels": 1,
        "embeddings": 1,
        "left_out": 0,
    }
    said = browser.get(address).json()
    assert (said["state"], said["case"], said["item"]) == ("stored", case_id, None)
    assert not storage.incoming_path(str(upload.pk)).exists()
    again = browser.post(f"{address}import/")
    assert (again.status_code, again.json()["code"]) == (409, "imported")
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"case.import_ordered", "case.imported"} <= actions
    assert inventory_of([Case.objects.get().pk]).rows["upload"] >= {upload.pk}


def test_the_same_crate_again_says_that_all_of_it_is_here(
    browser: Client, elsewhere: Lab1, exported: Exported
) -> None:
    data = exported.path.read_bytes()
    _run(_asked(browser, _sent(browser, elsewhere.lab, data)))
    again = _run(_asked(browser, _sent(browser, elsewhere.lab, data)))
    assert (again.state, again.outcome) == (JobState.SUCCEEDED, "all of it is here already")


def test_only_managers_of_the_lab_send_and_see_a_crate(
    browser: Client, elsewhere: Lab1, exported: Exported
) -> None:
    address = _sent(browser, elsewhere.lab, exported.path.read_bytes())
    other = Lab.objects.create(name="Other", slug="other")
    people = {}
    for name, lab, role in (
        ("annotator", elsewhere.lab, Role.ANNOTATOR),
        ("stranger", other, Role.MANAGER),
    ):
        user = User.objects.create_user(f"{name}@e.example", "correct horse battery")
        Membership.objects.create(user=user, lab=lab, role=role)
        people[name] = _client(user)
    for who in people.values():
        for answer in (
            who.get(address),
            who.post(f"{address}import/"),
            who.delete(address, headers=TUS),
            _piece(who, address, 0, b"x"),
        ):
            assert answer.status_code == 404
        assert who.get(URL).json()["results"] == []
    assert _begun(people["annotator"], elsewhere.lab, 9).status_code == 403
    assert _begun(people["stranger"], elsewhere.lab, 9).status_code == 404
    Membership.objects.filter(user=elsewhere.manager).update(role=Role.REVIEWER)
    assert browser.post(f"{address}import/").status_code == 403
    assert _begun(browser, elsewhere.lab, 9).status_code == 403
    assert Upload.objects.count() == 1 and not Job.objects.exists()


def test_a_manager_who_is_none_any_more_imports_nothing(
    browser: Client, elsewhere: Lab1, exported: Exported
) -> None:
    job = _asked(browser, _sent(browser, elsewhere.lab, exported.path.read_bytes()))
    Membership.objects.filter(user=elsewhere.manager).update(role=Role.ANNOTATOR)
    assert (_run(job).state, job.error_code) == (JobState.FAILED, "forbidden")
    _nothing_came()


def test_half_a_crate_a_part_and_a_file_of_a_case_are_not_imported(
    browser: Client, elsewhere: Lab1
) -> None:
    begun = _begun(browser, elsewhere.lab, 9)
    answer = browser.post(f"{begun['Location']}import/")
    assert (answer.status_code, answer.json()["code"]) == (409, "upload-incomplete")
    assert answer.json()["offset"] == 0
    part = _begun(browser, elsewhere.lab, 9, **{"Upload-Concat": "partial"})
    assert (part.status_code, "without parts" in part.json()["detail"]) == (400, True)
    case = Case.objects.create(lab=elsewhere.lab, accession="OWN")
    Upload.objects.create(lab=elsewhere.lab, case=case, filename="a.png", size_bytes=1)
    file = Upload.objects.get(filename="a.png")
    answer = browser.post(f"{URL}{file.pk}/import/")
    assert (answer.status_code, answer.json()["code"]) == (409, "no-crate")


@pytest.mark.parametrize(
    ("harm", "match"),
    [
        (lambda data: b"no zip at all", "W-1.zip is neither a zip nor a folder"),
        (lambda data: data[:-40], "W-1.zip: .*cut"),
        (lambda data: data.replace(b"originals/", b"../ginals/"), "W-1.zip: .*leads out of it"),
    ],
)
def test_a_harmful_crate_is_refused_with_its_name_and_kept_for_a_look(
    browser: Client, elsewhere: Lab1, exported: Exported, harm: Any, match: str
) -> None:
    address = _sent(browser, elsewhere.lab, harm(exported.path.read_bytes()))
    job = _run(_asked(browser, address))
    assert (job.state, job.error_code) == (JobState.FAILED, "crate")
    assert re.search(match, job.error_message), job.error_message
    said = browser.get(address).json()
    assert (said["state"], said["error"]["message"]) == ("refused", job.error_message)
    _nothing_came()
    assert browser.delete(address, headers=TUS).status_code == 204
    assert not list((storage.root() / "incoming").iterdir())


def test_it_is_opened_in_a_child_before_this_process_reads_it(
    browser: Client, elsewhere: Lab1, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: Any, **__: Any) -> None:
        raise AssertionError("read before the child had a look")

    monkeypatch.setattr("portal.exchange.services.importing.CrateReader", read)
    job = _run(_asked(browser, _sent(browser, elsewhere.lab, exported.path.read_bytes()[:-40])))
    assert (job.state, job.error_code) == (JobState.FAILED, "crate")


def test_ids_of_another_lab_are_neither_named_nor_overwritten(
    browser: Client, elsewhere: Lab1, exported: Exported
) -> None:
    other = Lab.objects.create(name="Other", slug="other")
    case = exported.rows["case"][0]
    theirs = Case.objects.create(pk=case["id"], lab=other, accession="THEIRS")
    job = _run(_asked(browser, _sent(browser, elsewhere.lab, exported.path.read_bytes())))
    assert (job.state, job.error_code) == (JobState.FAILED, "import-conflict")
    for word in (case["id"], "case:", "Other", "THEIRS"):
        assert word not in job.error_message
    theirs.refresh_from_db()
    assert (theirs.lab_id, theirs.accession) == (other.pk, "THEIRS")
    assert not Slide.objects.exists()


def test_over_the_quota_and_without_room_nothing_is_sent_or_imported(
    browser: Client, elsewhere: Lab1, exported: Exported, settings: Any, monkeypatch: Any
) -> None:
    data = exported.path.read_bytes()
    settings.TESSERA_LAB_QUOTA_BYTES = len(data) - 1
    refused = _begun(browser, elsewhere.lab, len(data))
    assert (refused.status_code, refused.json()["code"]) == (507, "lab-quota")
    settings.TESSERA_LAB_QUOTA_BYTES = len(data) + 1000  # of the crate or of what is in it
    address = _sent(browser, elsewhere.lab, data)
    settings.TESSERA_LAB_QUOTA_BYTES = 1000
    job = _run(_asked(browser, address))
    assert (job.state, job.error_code) == (JobState.FAILED, "lab-quota")
    assert quota_used_bytes(elsewhere.lab.pk) == len(data)  # it is kept
    settings.TESSERA_LAB_QUOTA_BYTES = len(data) + 1000

    def full(size_bytes: int = 0) -> None:
        if size_bytes:
            raise StorageFullError(MESSAGE)

    monkeypatch.setattr(import_files, "require_room", full)
    job = _run(_asked(browser, address))
    assert (job.state, job.error_message) == (JobState.FAILED, MESSAGE)
    _nothing_came()
    monkeypatch.undo()
    settings.TESSERA_LAB_QUOTA_BYTES = len(data) + 1000
    assert _run(_asked(browser, address)).state == JobState.SUCCEEDED
    assert quota_used_bytes(elsewhere.lab.pk) < len(data)  # the crate counts no more


def test_a_cancelled_import_leaves_nothing_and_is_asked_for_again(
    browser: Client, elsewhere: Lab1, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = _sent(browser, elsewhere.lab, exported.path.read_bytes())
    job = _asked(browser, address)
    assert browser.post(f"/api/v1/jobs/{job.pk}/cancel/").status_code == 202
    assert browser.get(address).json()["error"]["code"] == "cancelled"
    job = _asked(browser, address)
    take = import_files.file_take

    def cancels(*arguments: Any) -> None:
        take(*arguments)
        Job.objects.filter(pk=job.pk).update(cancel_requested=True)

    monkeypatch.setattr(import_files, "file_take", cancels)
    assert _run(job).state == JobState.CANCELLED
    _nothing_came()
    assert browser.get(address).json()["state"] == "refused"
    monkeypatch.undo()
    again = browser.post(f"/api/v1/jobs/{job.pk}/retry/")
    assert _run(Job.objects.get(pk=again.json()["id"])).state == JobState.SUCCEEDED
    assert Roi.objects.count() == 1


class _Killed(BaseException):
    pass


def test_a_killed_import_goes_on_with_what_was_taken_out(
    browser: Client, elsewhere: Lab1, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = _asked(browser, _sent(browser, elsewhere.lab, exported.path.read_bytes()))
    take, taken = import_files.file_take, []

    def killed(crate: Any, name: str, path: Path) -> None:
        if taken:
            raise _Killed
        taken.append(path)
        take(crate, name, path)

    monkeypatch.setattr(import_files, "file_take", killed)
    with pytest.raises(_Killed):
        job_run(job.pk)
    assert Upload.objects.get().state == UploadState.CHECKING
    monkeypatch.undo()
    written_at = taken[0].stat().st_mtime_ns
    kept: list[int] = []

    def looked(crate: Any, name: str, path: Path) -> None:
        take(crate, name, path)
        if path == taken[0]:
            kept.append(path.stat().st_mtime_ns)

    monkeypatch.setattr(import_files, "file_take", looked)
    Job.objects.update(state=JobState.QUEUED, lease_until=None, not_before=None)
    assert _run(job).state == JobState.SUCCEEDED, job.error_message
    assert kept == [written_at]


def test_two_jobs_of_one_crate_wait_for_each_other(
    browser: Client, elsewhere: Lab1, exported: Exported
) -> None:
    job = _asked(browser, _sent(browser, elsewhere.lab, exported.path.read_bytes()))
    path = storage.incoming_path(str(Upload.objects.get().pk))
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert _run(job).state == JobState.QUEUED  # again, a little later
    assert not Case.everything.exists()


def test_the_sweep_takes_a_crate_that_nobody_imports(
    browser: Client, elsewhere: Lab1, exported: Exported
) -> None:
    address = _sent(browser, elsewhere.lab, exported.path.read_bytes())
    Upload.objects.update(updated_at=timezone.now() - timedelta(days=3))
    assert storage_sweep().transfers == 1
    assert browser.get(address).status_code == 404
    assert not list((storage.root() / "incoming").iterdir())

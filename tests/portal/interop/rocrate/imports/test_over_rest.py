"""Import of a crate over REST: request, job, and repeated request."""

from __future__ import annotations

import fcntl
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from portal.annotations.models import Roi
from portal.archive.models import Case, Upload, UploadState
from portal.archive.services.sweep import storage_sweep
from portal.archive.storage import files as storage
from portal.audit.models import AuditEntry
from portal.core.storage_layout import root as storage_root
from portal.erasure.services.inventory import inventory_of
from portal.interop.rocrate.selectors.exports import import_folder
from portal.interop.rocrate.services.imports import files, jobs
from portal.interop.rocrate.services.imports.cases import case_import
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run
from tests.portal.interop.conftest import Lab1
from tests.portal.interop.rocrate.imports.conftest import Exported
from tests.portal.interop.rocrate.imports.sending import (
    assert_empty,
    request_import,
    run,
    sent,
)


def test_a_case_is_imported_and_the_job_reports_counts(
    browser: Client,
    other_portal: Lab1,
    exported: Exported,
    django_capture_on_commit_callbacks: Any,
) -> None:
    address = sent(browser, other_portal.lab, exported.path.read_bytes())
    upload = Upload.objects.get()
    assert not Job.objects.exists()  # it waits for a request
    assert browser.get(address).json()["case"] is None
    job = request_import(browser, address)
    assert (job.target_id, job.target_name) == (upload.pk, "W-1.zip")
    assert browser.get(address).json()["state"] == "checking"
    assert request_import(browser, address).pk == job.pk  # the one under way
    with django_capture_on_commit_callbacks(execute=True):
        run(job)
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
    body = browser.get(address).json()
    assert (body["state"], body["case"], body["item"]) == ("stored", case_id, None)
    assert not storage.incoming_path(str(upload.pk)).exists()
    again = browser.post(f"{address}import/")
    assert (again.status_code, again.json()["code"]) == (409, "imported")
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"case.import_requested", "case.imported"} <= actions
    inventory = inventory_of(upload.lab_id, [Case.objects.get().pk])
    assert str(upload.pk) in inventory.rows["archive.Upload"]


def test_the_same_crate_again_reports_everything_as_present(
    browser: Client, other_portal: Lab1, exported: Exported
) -> None:
    data = exported.path.read_bytes()
    run(request_import(browser, sent(browser, other_portal.lab, data)))
    again = run(request_import(browser, sent(browser, other_portal.lab, data)))
    assert (again.state, again.outcome) == (JobState.SUCCEEDED, "everything is already here")


def test_a_cancelled_import_leaves_nothing_and_can_be_repeated(
    browser: Client, other_portal: Lab1, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = sent(browser, other_portal.lab, exported.path.read_bytes())
    job = request_import(browser, address)
    assert browser.post(f"/api/v1/jobs/{job.pk}/cancel/").status_code == 202
    assert browser.get(address).json()["error"]["code"] == "cancelled"
    job = request_import(browser, address)
    take = files.file_take

    def cancels(*arguments: Any) -> None:
        take(*arguments)
        Job.objects.filter(pk=job.pk).update(cancel_requested=True)

    monkeypatch.setattr(files, "file_take", cancels)
    assert run(job).state == JobState.CANCELLED
    assert_empty()
    assert browser.get(address).json()["state"] == "refused"
    monkeypatch.undo()
    again = browser.post(f"/api/v1/jobs/{job.pk}/retry/")
    assert run(Job.objects.get(pk=again.json()["id"])).state == JobState.SUCCEEDED
    assert Roi.objects.count() == 1


class _Killed(BaseException):
    pass


def test_a_killed_import_resumes_with_its_extracted_files(
    browser: Client, other_portal: Lab1, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = request_import(browser, sent(browser, other_portal.lab, exported.path.read_bytes()))
    take, taken = files.file_take, []

    def killed(crate: Any, name: str, path: Path) -> None:
        if taken:
            raise _Killed
        taken.append(path)
        take(crate, name, path)

    monkeypatch.setattr(files, "file_take", killed)
    with pytest.raises(_Killed):
        job_run(job.pk)
    assert Upload.objects.get().state == UploadState.CHECKING
    monkeypatch.undo()
    written_at = taken[0].stat().st_mtime_ns
    stored: list[int] = []

    def looked(crate: Any, name: str, path: Path) -> None:
        take(crate, name, path)
        if path == taken[0]:
            stored.append(path.stat().st_mtime_ns)

    monkeypatch.setattr(files, "file_take", looked)
    Job.objects.update(state=JobState.QUEUED, lease_until=None, not_before=None)
    assert run(job).state == JobState.SUCCEEDED, job.error_message
    assert stored == [written_at]


def test_two_jobs_of_one_crate_wait_for_each_other(
    browser: Client, other_portal: Lab1, exported: Exported
) -> None:
    job = request_import(browser, sent(browser, other_portal.lab, exported.path.read_bytes()))
    path = storage.incoming_path(str(Upload.objects.get().pk))
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert run(job).state == JobState.QUEUED  # again, a little later
    assert not Case.all_objects.exists()


def test_the_sweep_deletes_a_crate_without_an_import(
    browser: Client, other_portal: Lab1, exported: Exported
) -> None:
    address = sent(browser, other_portal.lab, exported.path.read_bytes())
    Upload.objects.update(updated_at=timezone.now() - timedelta(days=3))
    assert storage_sweep().transfers == 1
    assert browser.get(address).status_code == 404
    assert not list((storage_root() / "incoming").iterdir())


def test_extracted_files_in_use_are_not_swept(
    exported: Exported, other_portal: Lab1, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = import_folder(other_portal.lab.pk, uuid.UUID(exported.rows["case"][0]["id"]))
    folder.mkdir(parents=True)
    touched: list[Path] = []
    monkeypatch.setattr(files.os, "utime", touched.append)
    case_import(source=exported.path, lab=other_portal.lab, user=other_portal.manager)
    assert touched == [folder]


def test_a_transfer_deleted_during_its_import_request_is_not_found(
    browser: Client, other_portal: Lab1, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = sent(browser, other_portal.lab, exported.path.read_bytes())
    look = jobs.upload_get

    def looked(**message: Any) -> Upload:
        response = look(**message)
        Upload.objects.filter(pk=response.pk).delete()
        return response

    monkeypatch.setattr(jobs, "upload_get", looked)
    assert browser.post(f"{address}import/").status_code == 404
    assert not Job.objects.exists()

"""A crate sent over REST: asked for, worked on by a job, and asked for again."""

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
from portal.archive import storage
from portal.archive.models import Case, Upload, UploadState
from portal.archive.services import storage_sweep
from portal.audit.models import AuditEntry
from portal.core.storage_layout import root as storage_root
from portal.exchange.selectors import import_folder
from portal.exchange.services import case_import, import_files, import_jobs
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run
from portal.keeping.services.erasing.inventory import inventory_of
from tests.portal.exchange.conftest import Lab1
from tests.portal.exchange.importing.conftest import Exported
from tests.portal.exchange.importing.sending import (
    asked,
    nothing_came,
    run,
    sent,
)


def test_a_case_comes_in_and_the_job_tells_what_of(
    browser: Client,
    elsewhere: Lab1,
    exported: Exported,
    django_capture_on_commit_callbacks: Any,
) -> None:
    address = sent(browser, elsewhere.lab, exported.path.read_bytes())
    upload = Upload.objects.get()
    assert not Job.objects.exists()  # it waits to be asked for
    assert browser.get(address).json()["case"] is None
    job = asked(browser, address)
    assert (job.target_id, job.target_name) == (upload.pk, "W-1.zip")
    assert browser.get(address).json()["state"] == "checking"
    assert asked(browser, address).pk == job.pk  # the one under way
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
    said = browser.get(address).json()
    assert (said["state"], said["case"], said["item"]) == ("stored", case_id, None)
    assert not storage.incoming_path(str(upload.pk)).exists()
    again = browser.post(f"{address}import/")
    assert (again.status_code, again.json()["code"]) == (409, "imported")
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"case.import_ordered", "case.imported"} <= actions
    found = inventory_of(upload.lab_id, [Case.objects.get().pk])
    assert str(upload.pk) in found.rows["archive.Upload"]


def test_the_same_crate_again_says_that_all_of_it_is_here(
    browser: Client, elsewhere: Lab1, exported: Exported
) -> None:
    data = exported.path.read_bytes()
    run(asked(browser, sent(browser, elsewhere.lab, data)))
    again = run(asked(browser, sent(browser, elsewhere.lab, data)))
    assert (again.state, again.outcome) == (JobState.SUCCEEDED, "everything is already here")


def test_a_cancelled_import_leaves_nothing_and_is_asked_for_again(
    browser: Client, elsewhere: Lab1, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = sent(browser, elsewhere.lab, exported.path.read_bytes())
    job = asked(browser, address)
    assert browser.post(f"/api/v1/jobs/{job.pk}/cancel/").status_code == 202
    assert browser.get(address).json()["error"]["code"] == "cancelled"
    job = asked(browser, address)
    take = import_files.file_take

    def cancels(*arguments: Any) -> None:
        take(*arguments)
        Job.objects.filter(pk=job.pk).update(cancel_requested=True)

    monkeypatch.setattr(import_files, "file_take", cancels)
    assert run(job).state == JobState.CANCELLED
    nothing_came()
    assert browser.get(address).json()["state"] == "refused"
    monkeypatch.undo()
    again = browser.post(f"/api/v1/jobs/{job.pk}/retry/")
    assert run(Job.objects.get(pk=again.json()["id"])).state == JobState.SUCCEEDED
    assert Roi.objects.count() == 1


class _Killed(BaseException):
    pass


def test_a_killed_import_goes_on_with_what_was_taken_out(
    browser: Client, elsewhere: Lab1, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = asked(browser, sent(browser, elsewhere.lab, exported.path.read_bytes()))
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
    assert run(job).state == JobState.SUCCEEDED, job.error_message
    assert kept == [written_at]


def test_two_jobs_of_one_crate_wait_for_each_other(
    browser: Client, elsewhere: Lab1, exported: Exported
) -> None:
    job = asked(browser, sent(browser, elsewhere.lab, exported.path.read_bytes()))
    path = storage.incoming_path(str(Upload.objects.get().pk))
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert run(job).state == JobState.QUEUED  # again, a little later
    assert not Case.everything.exists()


def test_the_sweep_takes_a_crate_that_nobody_imports(
    browser: Client, elsewhere: Lab1, exported: Exported
) -> None:
    address = sent(browser, elsewhere.lab, exported.path.read_bytes())
    Upload.objects.update(updated_at=timezone.now() - timedelta(days=3))
    assert storage_sweep().transfers == 1
    assert browser.get(address).status_code == 404
    assert not list((storage_root() / "incoming").iterdir())


def test_what_was_taken_out_long_ago_is_not_swept_while_it_is_used(
    exported: Exported, elsewhere: Lab1, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = import_folder(elsewhere.lab.pk, uuid.UUID(exported.rows["case"][0]["id"]))
    folder.mkdir(parents=True)
    touched: list[Path] = []
    monkeypatch.setattr(import_files.os, "utime", touched.append)
    case_import(source=exported.path, lab=elsewhere.lab, user=elsewhere.manager)
    assert touched == [folder]


def test_a_transfer_that_goes_while_its_import_is_asked_for_is_not_found(
    browser: Client, elsewhere: Lab1, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = sent(browser, elsewhere.lab, exported.path.read_bytes())
    look = import_jobs.upload_get

    def looked(**said: Any) -> Upload:
        found = look(**said)
        Upload.objects.filter(pk=found.pk).delete()
        return found

    monkeypatch.setattr(import_jobs, "upload_get", looked)
    assert browser.post(f"{address}import/").status_code == 404
    assert not Job.objects.exists()

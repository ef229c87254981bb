"""A crate sent over REST that does not come in: by whom, of what kind, for want of room."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from portal.archive.models import Case, Slide, Upload
from portal.archive.services.quotas import quota_used_bytes
from portal.core.disk import MESSAGE
from portal.core.errors import StorageFullError
from portal.core.storage_layout import root as storage_root
from portal.interop.rocrate.services.imports import files
from portal.jobs.models import Job, JobState
from portal.labs.models import Lab, Membership, Role, User
from tests.portal.interop.conftest import Lab1
from tests.portal.interop.rocrate.imports.conftest import Exported
from tests.portal.interop.rocrate.imports.sending import (
    TUS,
    URL,
    assert_empty,
    begin_upload,
    client,
    piece,
    request_import,
    run,
    sent,
)


def test_only_managers_of_the_lab_send_and_see_a_crate(
    browser: Client, other_portal: Lab1, exported: Exported
) -> None:
    address = sent(browser, other_portal.lab, exported.path.read_bytes())
    other = Lab.objects.create(name="Other", slug="other")
    people = {}
    for name, lab, role in (
        ("annotator", other_portal.lab, Role.ANNOTATOR),
        ("stranger", other, Role.MANAGER),
    ):
        user = User.objects.create_user(f"{name}@e.example", "correct horse battery")
        Membership.objects.create(user=user, lab=lab, role=role)
        people[name] = client(user)
    for who in people.values():
        for answer in (
            who.get(address),
            who.post(f"{address}import/"),
            who.delete(address, headers=TUS),
            piece(who, address, 0, b"x"),
        ):
            assert answer.status_code == 404
        assert who.get(URL).json()["results"] == []
    assert begin_upload(people["annotator"], other_portal.lab, 9).status_code == 403
    assert begin_upload(people["stranger"], other_portal.lab, 9).status_code == 404
    Membership.objects.filter(user=other_portal.manager).update(role=Role.REVIEWER)
    assert browser.post(f"{address}import/").status_code == 403
    assert begin_upload(browser, other_portal.lab, 9).status_code == 403
    assert Upload.objects.count() == 1 and not Job.objects.exists()


def test_a_former_manager_cannot_import(
    browser: Client, other_portal: Lab1, exported: Exported
) -> None:
    job = request_import(browser, sent(browser, other_portal.lab, exported.path.read_bytes()))
    Membership.objects.filter(user=other_portal.manager).update(role=Role.ANNOTATOR)
    assert (run(job).state, job.error_code) == (JobState.FAILED, "forbidden")
    assert_empty()


def test_half_a_crate_a_part_and_a_file_of_a_case_are_not_imported(
    browser: Client, other_portal: Lab1
) -> None:
    opened = begin_upload(browser, other_portal.lab, 9)
    answer = browser.post(f"{opened['Location']}import/")
    assert (answer.status_code, answer.json()["code"]) == (409, "upload-incomplete")
    assert answer.json()["offset"] == 0
    part = begin_upload(browser, other_portal.lab, 9, **{"Upload-Concat": "partial"})
    assert (part.status_code, "without parts" in part.json()["detail"]) == (400, True)
    case = Case.objects.create(lab=other_portal.lab, accession="OWN")
    Upload.objects.create(lab=other_portal.lab, case=case, filename="a.png", size_bytes=1)
    file = Upload.objects.get(filename="a.png")
    answer = browser.post(f"{URL}{file.pk}/import/")
    assert (answer.status_code, answer.json()["code"]) == (409, "no-crate")


@pytest.mark.parametrize(
    ("harm", "match"),
    [
        (lambda data: b"no zip at all", "W-1.zip is neither a zip nor a folder"),
        (lambda data: data[:-40], "W-1.zip: .*truncated"),
        (lambda data: data.replace(b"originals/", b"../ginals/"), "W-1.zip: .*leads outside it"),
    ],
)
def test_a_harmful_crate_is_refused_by_name_and_quarantined(
    browser: Client, other_portal: Lab1, exported: Exported, harm: Any, match: str
) -> None:
    address = sent(browser, other_portal.lab, harm(exported.path.read_bytes()))
    job = run(request_import(browser, address))
    assert (job.state, job.error_code) == (JobState.FAILED, "crate")
    assert re.search(match, job.error_message), job.error_message
    body = browser.get(address).json()
    assert (body["state"], body["error"]["message"]) == ("refused", job.error_message)
    assert_empty()
    assert browser.delete(address, headers=TUS).status_code == 204
    assert not list((storage_root() / "incoming").iterdir())


def test_a_crate_is_opened_in_a_child_process_first(
    browser: Client, other_portal: Lab1, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: Any, **__: Any) -> None:
        raise AssertionError("read before the child had a look")

    monkeypatch.setattr("portal.interop.rocrate.services.imports.cases.CrateReader", read)
    job = run(
        request_import(browser, sent(browser, other_portal.lab, exported.path.read_bytes()[:-40]))
    )
    assert (job.state, job.error_code) == (JobState.FAILED, "crate")


def test_ids_of_another_lab_are_neither_named_nor_overwritten(
    browser: Client, other_portal: Lab1, exported: Exported
) -> None:
    other = Lab.objects.create(name="Other", slug="other")
    case = exported.rows["case"][0]
    theirs = Case.objects.create(pk=case["id"], lab=other, accession="THEIRS")
    job = run(request_import(browser, sent(browser, other_portal.lab, exported.path.read_bytes())))
    assert (job.state, job.error_code) == (JobState.FAILED, "import-conflict")
    for word in (case["id"], "case:", "Other", "THEIRS"):
        assert word not in job.error_message
    theirs.refresh_from_db()
    assert (theirs.lab_id, theirs.accession) == (other.pk, "THEIRS")
    assert not Slide.objects.exists()


@pytest.mark.slow
def test_over_quota_or_without_disk_space_an_upload_or_import_is_refused(
    browser: Client, other_portal: Lab1, exported: Exported, settings: Any, monkeypatch: Any
) -> None:
    data = exported.path.read_bytes()
    settings.TESSERA_LAB_QUOTA_BYTES = len(data) - 1
    refused = begin_upload(browser, other_portal.lab, len(data))
    assert (refused.status_code, refused.json()["code"]) == (507, "lab-quota")
    settings.TESSERA_LAB_QUOTA_BYTES = len(data) + 1000  # of the crate or of what is in it
    address = sent(browser, other_portal.lab, data)
    settings.TESSERA_LAB_QUOTA_BYTES = 1000
    job = run(request_import(browser, address))
    assert (job.state, job.error_code) == (JobState.FAILED, "lab-quota")
    assert "0 bytes of 1000 bytes are used" in job.error_message, job.error_message
    assert quota_used_bytes(other_portal.lab.pk) == len(data)  # it is kept
    settings.TESSERA_LAB_QUOTA_BYTES = len(data) + 1000

    def full(size_bytes: int = 0) -> None:
        if size_bytes:
            raise StorageFullError(MESSAGE)

    monkeypatch.setattr(files, "require_room", full)
    job = run(request_import(browser, address))
    assert (job.state, job.error_message) == (JobState.FAILED, MESSAGE)
    assert_empty()
    monkeypatch.undo()
    settings.TESSERA_LAB_QUOTA_BYTES = len(data) + 1000
    assert run(request_import(browser, address)).state == JobState.SUCCEEDED
    assert quota_used_bytes(other_portal.lab.pk) < len(data)  # the crate counts no more

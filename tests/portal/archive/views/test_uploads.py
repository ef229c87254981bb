"""Pages: files for a case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from portal.archive.models import Case
from tests.portal.archive.support import picture

pytestmark = pytest.mark.django_db


def test_the_form_receives_several_files(page: Client, case: Case) -> None:
    files = [SimpleUploadedFile(f"{n}.png", picture(20, 20, seed=n)) for n in range(2)]
    response = page.post(f"/cases/{case.pk}/upload/", {"file": files})
    assert response.headers["Location"] == f"/cases/{case.pk}/"
    assert sorted(case.slides.values_list("name", flat=True)) == ["0.png", "1.png"]


def test_the_script_gets_json(page: Client, case: Case) -> None:
    sent = {"file": SimpleUploadedFile("a.png", picture())}
    response = page.post(f"/cases/{case.pk}/upload/", sent, headers={"Accept": "application/json"})
    assert response.status_code == 202
    assert response.json()["case_url"] == f"/cases/{case.pk}/"


def test_the_script_learns_why_a_file_was_refused(page: Client, case: Case, storage: Path) -> None:
    sent = {"file": SimpleUploadedFile("a.svs", b"just text")}
    response = page.post(f"/cases/{case.pk}/upload/", sent, headers={"Accept": "application/json"})
    assert response.status_code == 400
    assert response.headers["Content-Type"] == "application/problem+json"
    assert "a.svs was not stored: the file is a text file" in response.json()["detail"]
    assert not [path for path in storage.rglob("*") if path.is_file()]


def test_a_file_beyond_the_limit_names_the_limit(
    page: Client, case: Case, settings: Any, storage: Path
) -> None:
    settings.TESSERA_UPLOAD_MAX_BYTES = 1000
    sent = {"file": SimpleUploadedFile("a.png", picture())}
    response = page.post(f"/cases/{case.pk}/upload/", sent, headers={"Accept": "application/json"})
    assert response.status_code == 413
    assert "the limit is 1,000 bytes" in response.json()["detail"]
    assert not [path for path in storage.rglob("*") if path.is_file()]


def test_the_page_says_what_comes_as_one_archive(page: Client, case: Case) -> None:
    text = page.get(f"/cases/{case.pk}/upload/").content.decode()
    assert "MRXS, VMS, VMU, DICOM series" in text and "ZIP" in text

"""Pages: files for a case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from portal.archive.models import Case
from portal.archive.services.transfers.arriving import upload_begin
from portal.labs.models import User
from tests.portal.archive.support import picture

pytestmark = pytest.mark.django_db


def test_the_form_receives_several_files(page: Client, case: Case) -> None:
    files = [SimpleUploadedFile(f"{n}.png", picture(20, 20, seed=n)) for n in range(2)]
    response = page.post(f"/cases/{case.pk}/upload/", {"file": files})
    assert response.headers["Location"] == f"/cases/{case.pk}/"
    assert sorted(case.slides.values_list("name", flat=True)) == ["0.png", "1.png"]


def test_a_form_shows_why_a_file_was_refused(page: Client, case: Case, storage: Path) -> None:
    sent = {"file": SimpleUploadedFile("a.svs", b"just text")}
    response = page.post(f"/cases/{case.pk}/upload/", sent, follow=True)
    assert "a.svs was not stored: the file is a text file" in response.content.decode()
    assert not [path for path in storage.rglob("*") if path.is_file()]


def test_a_file_beyond_the_limit_names_the_limit(
    page: Client, case: Case, settings: Any, storage: Path
) -> None:
    settings.TESSERA_UPLOAD_MAX_BYTES = 1000
    sent = {"file": SimpleUploadedFile("a.png", picture())}
    response = page.post(f"/cases/{case.pk}/upload/", sent, follow=True)
    assert "the limit is 1,000 bytes" in response.content.decode()
    assert not [path for path in storage.rglob("*") if path.is_file()]


def test_unfinished_uploads_are_listed_to_their_sender(
    page: Client, case: Case, annotator: User, manager: User
) -> None:
    for user, name in ((annotator, "mine.svs"), (manager, "theirs.svs")):
        upload_begin(case=case, filename=name, size_bytes=2048, user=user)
    text = page.get(f"/cases/{case.pk}/upload/").content.decode()
    assert "mine.svs" in text and "2.0 KiB" in text and "deleted\n" in text
    assert "theirs.svs" not in text


def test_the_page_lists_the_formats_sent_as_one_archive(page: Client, case: Case) -> None:
    text = page.get(f"/cases/{case.pk}/upload/").content.decode()
    assert "MRXS, VMS, VMU, OME-Zarr, DICOM series" in text and "ZIP" in text

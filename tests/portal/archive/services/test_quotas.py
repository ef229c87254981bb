"""What a lab's originals may hold."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from rest_framework.test import APIClient

from portal.archive import services
from portal.archive.models import Case
from portal.core.errors import StorageFullError
from portal.labs.models import Lab, User
from tests.portal.archive.support import picture, png

pytestmark = pytest.mark.django_db


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_lab_beyond_its_quota_gets_nothing_more(
    api: APIClient, case: Case, settings: Any, storage: Path
) -> None:
    settings.TESSERA_LAB_QUOTA_BYTES = 5000
    assert len(picture(40, 30)) < 5000 < 2 * len(picture(40, 30))
    first = api.post("/api/v1/slides/", {"case": case.pk, "file": png()}, format="multipart")
    assert first.status_code == 202
    sent = {"case": case.pk, "file": png(seed=1)}
    answer = api.post("/api/v1/slides/", sent, format="multipart")
    assert (answer.status_code, answer.json()["code"]) == (507, "lab-quota")
    assert "do not fit" in answer.json()["detail"]
    assert len(files_below(storage)) == 1


def test_what_is_announced_counts_before_it_has_come(case: Case, annotator: User, lab: Lab) -> None:
    services.quota_set(lab=lab, limit_bytes=100)
    services.upload_begin(case=case, filename="a", size_bytes=60, user=annotator)
    with pytest.raises(StorageFullError, match="60 bytes of 100 bytes are taken"):
        services.upload_begin(case=case, filename="b", size_bytes=60, user=annotator)


def test_another_labs_files_do_not_count(
    case: Case, foreign_case: Case, annotator: User, stranger: User, lab: Lab
) -> None:
    services.quota_set(lab=lab, limit_bytes=100)
    services.upload_begin(case=foreign_case, filename="a", size_bytes=90, user=stranger)
    services.upload_begin(case=case, filename="a", size_bytes=90, user=annotator)


def test_the_command_sets_and_lists(lab: Lab, other_lab: Lab, settings: Any) -> None:
    settings.TESSERA_LAB_QUOTA_BYTES = 0
    said = io.StringIO()
    call_command("archive_quota", "north", "--gib", "2", stdout=said)
    call_command("archive_quota", stdout=said)
    assert "north: 0 bytes of 2.0 GiB" in said.getvalue()
    assert "south: 0 bytes of any amount" in said.getvalue()
    call_command("archive_quota", "north", "--default", stdout=said)
    assert services.quota_limit_bytes(lab.pk) == 0

"""Storage quota of a lab's originals."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, connections
from rest_framework.test import APIClient

from portal.archive.models import Case, Upload
from portal.archive.services import uploads
from portal.archive.services.items import item_receive
from portal.archive.services.quotas import quota_limit_bytes, quota_set
from portal.archive.services.transfers import crates
from portal.archive.services.transfers.arriving import upload_append, upload_begin, upload_discard
from portal.archive.services.transfers.crates import crate_begin
from portal.archive.services.uploads import upload_admit
from portal.core.errors import StorageFullError
from portal.jobs.models import Job
from portal.labs.models import Lab, User
from tests.portal.archive.support import picture, png, run_job
from tests.threads import at_once

pytestmark = pytest.mark.django_db


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_lab_beyond_its_quota_cannot_upload(
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


def test_announced_uploads_count_before_they_arrive(case: Case, annotator: User, lab: Lab) -> None:
    quota_set(lab=lab, limit_bytes=100)
    upload_begin(case=case, filename="a", size_bytes=60, user=annotator)
    with pytest.raises(StorageFullError, match="60 bytes of 100 bytes"):
        upload_begin(case=case, filename="b", size_bytes=60, user=annotator)


class FillsQuota(io.BytesIO):
    """A file that is on its way while something else happens, once its first bytes were read."""

    def __init__(self, data: bytes, act: Callable[[], object]) -> None:
        super().__init__(data)
        self.act: list[Callable[[], object]] = [act]

    def read(self, size: int | None = -1) -> bytes:
        content = super().read(size)
        if self.act:
            self.act.pop()()
        return content


def test_an_upload_is_refused_when_the_quota_fills_during_it(
    case: Case, annotator: User, lab: Lab, storage: Path
) -> None:
    data = picture(40, 30, seed=1)
    before = item_receive(case=case, file=png(), filename="there.png", user=annotator)
    stored = before.item.asset.size_bytes
    quota_set(lab=lab, limit_bytes=stored + len(data) + 10)
    there = files_below(storage)

    def fill() -> None:
        upload_begin(case=case, filename="b", size_bytes=20, user=annotator)

    upload_admit(case=case, user=annotator, size_bytes=len(data))
    running = FillsQuota(data, fill)
    with pytest.raises(StorageFullError) as refused:
        item_receive(case=case, file=running, filename="a.png", user=annotator)
    assert refused.value.code == "lab-quota"
    assert refused.value.details == {
        "limit_bytes": stored + len(data) + 10,
        "used_bytes": stored + 20,
    }
    assert [path for path in files_below(storage) if "incoming" not in str(path)] == there
    assert sorted(Upload.objects.values_list("filename", "state")) == [
        ("b", "receiving"),
        ("there.png", "stored"),
    ]
    upload_discard(upload=Upload.objects.get(filename="b"))
    again = item_receive(case=case, file=io.BytesIO(data), filename="a.png", user=annotator)
    assert again.is_new


def test_a_transfer_in_pieces_reserves_its_size(
    case: Case, annotator: User, lab: Lab, storage: Path
) -> None:
    """Parallel transfers, or a lower limit before its last byte, do not change that."""
    data = picture(40, 30)
    quota_set(lab=lab, limit_bytes=len(data) + 10)
    running = upload_begin(case=case, filename="a.png", size_bytes=len(data), user=annotator)
    upload_append(upload=running, offset=0, chunks=[data[:100]], user=annotator)
    other = io.BytesIO(picture(40, 30, seed=1))
    with pytest.raises(StorageFullError):
        item_receive(case=case, file=other, filename="b.png", user=annotator)
    quota_set(lab=lab, limit_bytes=50)
    upload_append(upload=running, offset=100, chunks=[data[100:]], user=annotator)
    job = run_job(Job.objects.get(kind="upload_finish", target_id=running.pk))
    assert job.state == "succeeded", job.error_message
    running.refresh_from_db()
    assert running.state == "stored"
    with pytest.raises(StorageFullError):
        upload_begin(case=case, filename="c", size_bytes=1, user=annotator)


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="threads share one database in memory")
@pytest.mark.parametrize("is_crate", [False, True])
def test_only_one_of_two_concurrent_uploads_takes_the_last_room(
    case: Case, manager: User, lab: Lab, monkeypatch: pytest.MonkeyPatch, is_crate: bool
) -> None:
    quota_set(lab=lab, limit_bytes=100)
    both, result = threading.Barrier(2), list[str]()

    def slow(size_bytes: int) -> None:
        with suppress(threading.BrokenBarrierError):  # the other is kept waiting, as it should be
            both.wait(timeout=1)

    for module in (uploads, crates):
        monkeypatch.setattr(module, "require_room", slow)

    def begin() -> None:
        try:
            if is_crate:
                crate_begin(lab=lab, filename="a", size_bytes=60, user=manager)
            else:
                upload_begin(case=case, filename="a", size_bytes=60, user=manager)
            result.append("begun")
        except StorageFullError as error:
            result.append(error.code)
        connections.close_all()

    at_once(begin)
    assert sorted(result) == ["begun", "lab-quota"]


def test_another_labs_files_do_not_count(
    case: Case, foreign_case: Case, annotator: User, stranger: User, lab: Lab
) -> None:
    quota_set(lab=lab, limit_bytes=100)
    upload_begin(case=foreign_case, filename="a", size_bytes=90, user=stranger)
    upload_begin(case=case, filename="a", size_bytes=90, user=annotator)


def test_the_command_sets_and_lists(lab: Lab, other_lab: Lab, settings: Any) -> None:
    settings.TESSERA_LAB_QUOTA_BYTES = 0
    output = io.StringIO()
    call_command("archive_quota", "north", "--gib", "2", stdout=output)
    call_command("archive_quota", stdout=output)
    assert "north: 0 bytes of 2.0 GiB" in output.getvalue()
    assert "south: 0 bytes of any amount" in output.getvalue()
    call_command("archive_quota", "north", "--default", stdout=output)
    assert quota_limit_bytes(lab.pk) == 0

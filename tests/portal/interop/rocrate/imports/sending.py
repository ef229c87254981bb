"""Upload of a crate over REST, and the request to import it."""

from __future__ import annotations

import base64
from typing import Any

from django.test import Client

from portal.archive.models import Asset, Case
from portal.jobs.models import Job
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab, User
from tests.clients import client_of

URL = "/api/v1/uploads/"
TUS = {"Tus-Resumable": "1.0.0"}


def _meta(**found: Any) -> str:
    return ",".join(f"{k} {base64.b64encode(str(v).encode()).decode()}" for k, v in found.items())


def client(user: User) -> Client:
    """Signed in as one."""
    return client_of(user)


def begin_upload(browser: Client, lab: Lab, size_bytes: int, **headers: str) -> Any:
    """Announced to a lab."""
    sent = {"Upload-Length": str(size_bytes), **headers}
    sent["Upload-Metadata"] = _meta(lab=lab.pk, filename="W-1.zip")
    return browser.post(URL, headers=TUS | sent)


def piece(browser: Client, address: str, offset: int, data: bytes) -> Any:
    """Sent at an offset."""
    return browser.generic(
        "PATCH",
        address,
        data,
        content_type="application/offset+octet-stream",
        headers=TUS | {"Upload-Offset": str(offset)},
    )


def sent(browser: Client, lab: Lab, data: bytes) -> str:
    """In two pieces; returns its address."""
    opened = begin_upload(browser, lab, len(data))
    assert opened.status_code == 201, opened.content
    half = len(data) // 2
    for offset, part in ((0, data[:half]), (half, data[half:])):
        assert piece(browser, opened["Location"], offset, part).status_code == 204
    return str(opened["Location"])


def request_import(browser: Client, address: str) -> Job:
    """Job of a requested import."""
    answer = browser.post(f"{address}import/")
    assert answer.status_code == 202, answer.content
    assert answer["Location"].endswith(f"/jobs/{answer.json()['id']}/")
    return Job.objects.get(pk=answer.json()["id"])


def run(job: Job) -> Job:
    """To its end."""
    job_run(job.pk)
    job.refresh_from_db()
    return job


def assert_empty() -> None:
    """Check that no case was created, and no job for it."""
    assert not Case.all_objects.exists() and not Asset.objects.exists()
    assert not Job.objects.exclude(kind="case_import").exists()

"""Erasure by page and REST: shown first, proved by typing, done by a job, certified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.archive.models import Case, CaseShare
from portal.archive.models.shares import today
from portal.archive.services.sharing import share_offer
from portal.core.models import Event
from portal.erasure.models import Erasure
from portal.jobs.models import Job
from portal.labs.models import Lab, User
from tests import world
from tests.portal.archive.support import run_job

pytestmark = pytest.mark.django_db(transaction=True)
PAGE, REST = "/lab/erasure/", "/api/v1/erasures/"


@pytest.fixture
def case(
    lab: Lab, manager: User, storage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Case:
    world.in_process(monkeypatch)
    made = world.build(lab, manager, tmp_path)
    Job.objects.exclude(state="succeeded").update(state="cancelled")  # nothing is at work
    return made.case


def test_the_page_previews_confirms_erases_and_certifies(
    client: Client, case: Case, manager: User, other_lab: Lab
) -> None:
    share_offer(case=case, with_lab=other_lab.slug, until=today(), user=manager)
    client.force_login(manager)
    preview = client.post(PAGE, {"accession": "W-1"}).content.decode()
    assert "Type W-1 to erase" in preview and "2 originals" in preview
    wrong = client.post(PAGE, {"accession": "W-1", "typed": "w-1"})
    assert (wrong.status_code, Case.objects.count()) == (422, 1)
    assert "This does not match what is to be erased." in wrong.content.decode()
    ordered = client.post(PAGE, {"accession": "W-1", "typed": "W-1", "reason": "asked in May"})
    erasure = Erasure.objects.get()
    assert ordered.headers["Location"] == f"{PAGE}{erasure.pk}/"
    waiting = client.get(f"{PAGE}{erasure.pk}/").content.decode()
    assert "Under way" in waiting and "Waiting for a worker" in waiting
    # The page selects itself from its answers; the progress, which asks for its own, must not.
    assert 'hx-select="unset"' in waiting[waiting.index('hx-trigger="every 1s"') :]
    job = run_job(Job.objects.get(target_id=erasure.pk))
    assert job.state == "succeeded", job.error_message + job.traceback
    assert not Case.all_objects.exists() and not CaseShare.all_objects.exists()
    assert not Event.objects.filter(payload__case_id=str(case.pk)).exists()
    page = client.get(f"{PAGE}{erasure.pk}/").content.decode()
    assert "nothing is left" in page and "asked in May" in page
    assert "1 roi revision" in page and "1 roi revisions" not in page
    # The waiting page takes over the element of this id alone.
    assert 'href="?download"' in page[page.index('id="erasure"') :]
    certificate = client.get(f"{PAGE}{erasure.pk}/?download").json()
    assert certificate["verified"]["is_gone"] and certificate["cases"] == [str(case.pk)]
    assert "asked in May" in client.get(PAGE).content.decode()


def test_rest_previews_an_erasure_before_it_is_confirmed(
    api_as: Any, case: Case, manager: User
) -> None:
    api: APIClient = api_as(manager)
    response = api.post(REST, {"patient_key": "p1"})
    assert response.status_code == 200 and response.json()["counts"]["slide"] == 1
    assert (response.json()["typed"], response.json()["accessions"]) == ("p1", ["W-1"])
    wrong = api.post(REST, {"patient_key": "p1", "typed": "W-1"})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "not-confirmed")
    assert api.post(REST, {"patient_key": "p1", "accession": "W-1"}).status_code == 400
    assert Case.objects.filter(pk=case.pk).exists() and not Erasure.objects.exists()
    sent = api.post(REST, {"patient_key": "p1", "typed": "p1"})
    assert sent.status_code == 202
    assert run_job(Job.objects.get(pk=sent.json()["job"]["id"])).state == "succeeded"
    done = api.get(f"{REST}{sent.json()['id']}/").json()
    assert done["state"] == "done" and done["certificate"]["verified"]["is_gone"]


def test_unknown_cases_are_refused(client: Client, case: Case, manager: User) -> None:
    client.force_login(manager)
    assert client.post(PAGE, {"accession": "nothing"}).status_code == 422
    assert client.post(PAGE, {}).status_code == 422
    assert (
        client.post(PAGE, {"accession": "W-1", "typed": "W-1", "reason": "W-1"}).status_code == 422
    )
    assert Case.objects.filter(pk=case.pk).exists() and not Erasure.objects.exists()


def test_an_erasure_waits_for_a_running_job(client: Client, case: Case, manager: User) -> None:
    client.force_login(manager)
    client.post(PAGE, {"accession": "W-1", "typed": "W-1"})
    Job.objects.filter(kind="slide_ingest").update(state="running")
    job = run_job(Job.objects.get(kind="erasure_run"))
    assert job.state == "queued" and Case.all_objects.exists()

"""Pages and REST endpoints of jobs."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client

from portal.core.models import Event
from portal.core.tasks import UserError
from portal.jobs import claims
from portal.jobs.models import Job, JobState, WorkerHeartbeat
from portal.jobs.services import job_submit
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab, User

pytestmark = pytest.mark.django_db


def _broken(context: Any) -> None:
    raise UserError("slide.svs is empty.", code="empty")


@pytest.fixture
def name(kind: Callable[..., str]) -> str:
    return kind(_broken, title="Prepare slide")


@pytest.fixture
def job(lab: Lab, annotator: User, name: str) -> Job:
    return job_submit(kind=name, args={}, lab=lab, user=annotator, target_name="slide.svs")


PAGES = ("/jobs/", "/jobs/{}/", "/jobs/{}/?part=progress")


def test_cancel_returns_202_and_then_409(api: Any, job: Job) -> None:
    answer = api.post(f"/api/v1/jobs/{job.pk}/cancel/")
    assert (answer.status_code, answer.json()["state"]) == (202, "cancelled")
    assert api.post(f"/api/v1/jobs/{job.pk}/cancel/").json()["code"] == "job-ended"


def test_a_retry_is_accepted_with_the_new_jobs_location(api: Any, job: Job) -> None:
    job_run(job.pk)
    answer = api.post(f"/api/v1/jobs/{job.pk}/retry/")
    assert answer.status_code == 202
    assert answer["Location"].endswith(f"/api/v1/jobs/{answer.json()['id']}/")
    assert answer.json()["id"] != str(job.pk)


def test_page_and_api_show_the_error_of_a_failed_job(page: Client, api: Any, job: Job) -> None:
    job_run(job.pk)
    assert b"slide.svs is empty." in page.get(f"/jobs/{job.pk}/").content
    assert api.get(f"/api/v1/jobs/{job.pk}/").json()["error"] == {
        "code": "empty",
        "message": "slide.svs is empty.",
    }


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.QUEUED])
def test_no_page_shows_the_error_of_a_deleted_target(
    page: Client, job: Job, state: JobState
) -> None:
    Job.objects.update(
        target_type="slide",
        target_id=uuid.uuid4(),
        state=state,
        error_message="slide.svs is empty.",
    )
    for url in PAGES:
        assert b"slide.svs" not in page.get(url.format(job.pk)).content, url


def test_queue_and_id_of_a_job_are_behind_details(page: Client, job: Job) -> None:
    text = page.get(f"/jobs/{job.pk}/").content.decode()
    outside = re.sub(r"<details.*?</details>", "", text, flags=re.DOTALL)
    for fact in (f"<code>{job.pk}</code>", "<dt>Queue</dt>"):
        assert fact in text and fact not in outside


def test_the_progress_polls_until_the_job_ends(page: Client, job: Job) -> None:
    claimed = claims.claim(job.pk, worker="w")
    assert claimed is not None and claimed.lease_token is not None
    claims.renew_lease(
        job.pk, claimed.lease_token, progress_done=30, progress_total=120, phase="reading tiles"
    )
    running = page.get(f"/jobs/{job.pk}/?part=progress").content.decode()
    assert "hx-trigger" in running and 'value="25"' in running and "Reading tiles" in running
    claims.end_job(claims.leased_job(job.pk, claimed.lease_token), job.pk, JobState.SUCCEEDED)
    ended = page.get(f"/jobs/{job.pk}/?part=progress")
    assert "hx-trigger" not in ended.content.decode()
    assert ended["HX-Trigger"] == "job-ended"


def test_jobs_are_cancelled_and_retried_on_the_page(page: Client, job: Job) -> None:
    assert page.post(f"/jobs/{job.pk}/cancel/").status_code == 302
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    page.post(f"/jobs/{job.pk}/retry/")
    assert Job.objects.filter(state=JobState.QUEUED).count() == 1


@pytest.mark.parametrize("url", ["/jobs/", "/api/v1/jobs/"])
def test_lists_need_a_constant_number_of_queries(
    page: Client,
    api: Any,
    lab: Lab,
    annotator: User,
    name: str,
    url: str,
    django_assert_max_num_queries: Any,
) -> None:
    for _ in range(30):
        job_submit(kind=name, args={}, lab=lab, user=annotator)
    caller = api if url.startswith("/api") else page
    with django_assert_max_num_queries(17):
        assert caller.get(url).status_code == 200


def test_only_a_list_with_open_jobs_has_a_column_of_boxes(page: Client, job: Job) -> None:
    assert page.get("/jobs/").content.decode().count("table__tick") == 2
    job_run(job.pk)
    assert "table__tick" not in page.get("/jobs/").content.decode()


def test_the_list_filters_by_state(page: Client, job: Job) -> None:
    assert b"Prepare slide" in page.get("/jobs/?state=queued").content
    assert b"No such job" in page.get("/jobs/?state=failed").content
    assert b"No worker is running" in page.get("/jobs/").content


def test_the_list_filters_by_kind_and_person(
    page: Client, api: Any, lab: Lab, annotator: User, reviewer: User, job: Job
) -> None:
    other = job_submit(kind=job.kind, args={}, lab=lab, user=reviewer, target_name="theirs.svs")
    for query, seen in (("person=me", job), (f"person={reviewer.pk}", other)):
        listed = api.get(f"/api/v1/jobs/?{query}").json()["results"]
        assert [row["id"] for row in listed] == [str(seen.pk)]
        assert seen.target_name.encode() in page.get(f"/jobs/?{query}").content
    assert api.get("/api/v1/jobs/?kind=nothing").json()["results"] == []
    assert api.get("/api/v1/jobs/?person=nobody").json()["results"] == []
    assert b"No such job" in page.get("/jobs/?kind=nothing").content


def test_page_and_api_show_the_place_of_a_waiting_job(page: Client, api: Any, job: Job) -> None:
    body = api.get(f"/api/v1/jobs/{job.pk}/").json()
    assert body["wait"] == {"position": 1, "seconds": None}
    assert (body["priority"], body["outcome"], body["seconds_left"]) == ("interactive", "", None)
    assert api.get("/api/v1/jobs/").json()["results"][0]["wait"] == body["wait"]
    for url in ("/jobs/", f"/jobs/{job.pk}/", f"/jobs/{job.pk}/?part=progress"):
        assert b"Next in the queue" in page.get(url).content


def test_a_success_without_a_result_is_neutral(
    page: Client, kind: Callable[..., str], lab: Lab, annotator: User
) -> None:
    name = kind(lambda context: {"outcome": "no tissue", "reason": "the region is blank"})
    job = job_submit(kind=name, args={}, lab=lab, user=annotator)
    job_run(job.pk)
    body = page.get("/jobs/").content.decode()
    assert "No tissue" in body and "The region is blank" in body
    assert "pill--bad" not in body and "pill--ok" not in body


def test_several_jobs_are_cancelled_at_once(
    page: Client, api: Any, lab: Lab, annotator: User, reviewer: User, name: str
) -> None:
    first, second, third = (
        job_submit(kind=name, args={}, lab=lab, user=annotator) for _ in range(3)
    )
    theirs = job_submit(kind=name, args={}, lab=lab, user=reviewer)
    claims.claim(third.pk, worker="w")
    answer = api.post(
        "/api/v1/jobs/cancel/", {"ids": [str(first.pk), str(theirs.pk)]}, format="json"
    )
    assert (answer.status_code, answer.json()) == (
        202,
        {"cancelled": 1, "stopping": 0, "not_cancelled": 1},
    )
    ended = Event.objects.filter(name="job.ended").values_list("payload__job_id", flat=True)
    assert list(ended) == [str(first.pk)]
    page.post("/jobs/cancel/", {"job": [str(second.pk), "rubbish"]})
    second.refresh_from_db()
    assert (second.state, second.error_code) == (JobState.CANCELLED, "cancelled")
    response = page.post("/jobs/cancel/", {"all": "1", "kind": name}, follow=True)
    assert (
        b"0 cancelled, 1 stopping, 1 not cancelled: started by others, or already ended."
        in response.content
    )
    third.refresh_from_db()
    theirs.refresh_from_db()
    assert third.cancel_requested and theirs.state == JobState.QUEUED


def test_a_manager_cancels_all_jobs_and_an_empty_selection_none(
    manager: User, viewer: User, stranger: User, api_as: Any, job: Job
) -> None:
    url = "/api/v1/jobs/cancel/"
    assert api_as(manager).post(url, {}, format="json").status_code == 400
    refused = api_as(stranger).post(url, {"state": "queued"}, format="json")
    assert (refused.status_code, refused.json()["code"]) == (400, "nothing-open")
    assert api_as(viewer).post(url, {"state": "queued"}, format="json").status_code == 403
    done = api_as(manager).post(url, {"state": "queued"}, format="json").json()
    assert done == {"cancelled": 1, "stopping": 0, "not_cancelled": 0}


def test_the_list_shows_the_device_of_the_networks(client: Client, annotator: User) -> None:
    client.force_login(annotator)
    facts = {"queues": "default,gpu", "device": "Some GPU (cuda:0, 40 GiB)", "last_seen_at": Now()}
    WorkerHeartbeat.objects.create(name="w", **facts)
    page = client.get("/jobs/").content.decode()
    assert "1 worker; searches and mosaics are computed on Some GPU (cuda:0, 40 GiB)." in page

"""A report of many results: a job makes the pictures that are missing, then it is frozen."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from portal.annotations.models import Roi
from portal.annotations.services import roi_update
from portal.archive import storage
from portal.archive.models import Canvas
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_cancel
from portal.jobs.worker.runner import job_run
from portal.retrieval.models import Report, ReportRegion
from portal.retrieval.selectors import PICTURES_KIND
from portal.retrieval.thumbnails import frozen, regions
from tests.portal.retrieval.conftest import square

pytestmark = pytest.mark.django_db
COUNT = 2 * frozen.AT_ONCE


@pytest.fixture
def found(world):
    """Regions of so many patients that a job is needed."""
    return [
        world.embedded(world.canvas(world.case(f"BX-{n}000", f"q{n}")), 100 + 20 * n, 100)
        for n in range(COUNT)
    ]


@pytest.fixture
def address(world, found):
    roi = world.embedded(world.canvas(world.case("AX-1000", "p1")), 90, 100, name="Asked")
    return f"/rois/{roi.pk}/similar/report/"


@pytest.fixture
def page(world):
    made = Client()
    made.force_login(world.user)
    return made


@pytest.fixture
def made(monkeypatch):
    """Regions that a picture was made of, in their order."""
    seen = []
    render = regions.region_render

    def counted(roi, *rest):
        seen.append(roi.pk)
        return render(roi, *rest)

    monkeypatch.setattr(regions, "region_render", counted)
    return seen


def job():
    return Job.objects.get(kind=PICTURES_KIND)


def test_the_page_waits_for_its_pictures_and_leads_to_the_report(page, address, made):
    answer = page.post(address)
    assert answer.status_code == 202
    assert "Making the report" in answer.content.decode()
    assert made == [] and not Report.objects.exists()
    again = page.post(address, HTTP_HX_REQUEST="true")
    assert again.status_code == 202 and "<html" not in again.content.decode()
    job_run(job().pk)  # the same one
    assert len(set(made)) == len(made) == COUNT
    assert job().result == {"pictures": COUNT, "unreadable": 0}
    answer = page.post(address, HTTP_HX_REQUEST="true")
    report = Report.objects.get()
    assert answer["HX-Redirect"] == f"/reports/{report.pk}/"
    assert len(made) == COUNT + 1  # what is searched with
    assert ReportRegion.objects.filter(report=report, picture__isnull=False).count() == COUNT


def test_a_job_that_waits_for_long_is_waited_for(page, address):
    page.post(address)
    Job.objects.filter(pk=job().pk).update(created_at=timezone.now() - timedelta(hours=2))
    assert page.post(address).status_code == 202
    assert Job.objects.filter(kind=PICTURES_KIND).count() == 1


def test_a_page_that_waits_is_led_back_where_the_region_is_drawn_anew(world, page, address):
    page.post(address)
    roi = Roi.objects.select_related("canvas").get(pk=address.split("/")[2])
    changes = {"geometry": square(60, 60)}
    roi_update(roi=roi, user=world.user, expected_version=roi.version, changes=changes)
    answer = page.post(address, HTTP_HX_REQUEST="true")
    assert answer.status_code == 204
    assert answer["HX-Redirect"] == f"/rois/{roi.pk}/similar/"


def test_what_was_looked_at_before_needs_no_job(page, address, found, made):
    for roi in found[frozen.AT_ONCE :]:
        page.get(f"/rois/{roi.pk}/thumbnail.jpg?v=1&width=64px")
    seen = len(made)
    assert page.post(address).status_code == 302
    assert not Job.objects.filter(kind=PICTURES_KIND).exists()
    assert len(made) == seen + frozen.AT_ONCE + 1


def test_a_picture_that_cannot_be_made_keeps_nobody_waiting(page, address, found):
    gone = Canvas.objects.get(pk=found[0].canvas_id)
    storage.resolve(gone.pixels_path).unlink()
    page.post(address)
    job_run(job().pk)
    assert job().result == {"pictures": COUNT - 1, "unreadable": 1}
    assert page.post(address).status_code == 302
    assert ReportRegion.objects.filter(picture__isnull=True).count() == 1


def test_cancelled_between_two_pictures_it_keeps_those_and_the_next_goes_on(
    world, page, address, made, monkeypatch
):
    page.post(address)
    render = regions.region_render

    def cancelled(roi, *rest):
        if len(made) == 2:
            job_cancel(job=job(), user=world.user)
        return render(roi, *rest)

    monkeypatch.setattr(regions, "region_render", cancelled)
    monkeypatch.setattr("portal.jobs.worker.context.PROGRESS_EVERY_S", 0)  # asked at each picture
    job_run(job().pk)
    assert job().state == JobState.CANCELLED and 0 < len(made) < COUNT
    monkeypatch.setattr(regions, "region_render", render)
    assert page.post(address).status_code == 302  # who cancelled it may wait for it
    assert len(set(made)) == len(made) == COUNT + 1


def test_a_job_that_fails_keeps_nobody_waiting(page, address, monkeypatch):
    page.post(address)
    with monkeypatch.context() as patch:
        patch.setattr("portal.retrieval.tasks.reports.roi_thumbnail", lambda *_: 1 / 0)
        job_run(job().pk)
    assert job().state == JobState.FAILED
    assert page.post(address).status_code == 302


def test_run_again_after_its_worker_died_it_makes_only_what_is_missing(page, address, made):
    page.post(address)
    job_run(job().pk)
    Job.objects.filter(pk=job().pk).update(state=JobState.QUEUED, finished_at=None)
    job_run(job().pk)
    assert job().state == JobState.SUCCEEDED
    assert len(made) == COUNT


def test_rest_says_that_pictures_are_made(world, address):
    api = APIClient()
    api.force_authenticate(world.user)
    asked = {"roi": address.split("/")[2]}
    answer = api.post("/api/v1/reports/", asked, format="json")
    assert answer.status_code == 202 and answer.json()["report"] is None
    assert answer.json()["job"]["kind"] == PICTURES_KIND
    job_run(job().pk)
    assert api.post("/api/v1/reports/", asked, format="json").status_code == 201


def test_another_persons_job_is_not_waited_for(world, page, address, api_as, manager):
    page.post(address)
    answer = api_as(manager).post("/api/v1/reports/", {"roi": address.split("/")[2]}, format="json")
    assert answer.status_code == 202
    assert Job.objects.filter(kind=PICTURES_KIND).count() == 2

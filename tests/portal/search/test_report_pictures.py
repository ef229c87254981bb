"""A report of many results: a job makes the pictures that are missing, then it is frozen."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_update
from portal.archive.models import Canvas
from portal.archive.storage import files as storage
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_cancel
from portal.jobs.worker.runner import job_run
from portal.search.models import Report, ReportRegion
from portal.search.selectors.reports import PICTURES_KIND
from portal.search.thumbnails import regions, reports
from tests.clients import client_of
from tests.portal.embedded_rois import square

pytestmark = pytest.mark.django_db
COUNT = 2 * reports.MAX_IN_REQUEST


@pytest.fixture
def neighbours(world):
    """Regions of so many patients that a job is needed."""
    return [
        world.embedded(world.canvas(world.case(f"BX-{n}000", f"q{n}")), 100 + 20 * n, 100)
        for n in range(COUNT)
    ]


@pytest.fixture
def address(world, neighbours):
    roi = world.embedded(world.canvas(world.case("AX-1000", "p1")), 90, 100, name="Asked")
    return f"/rois/{roi.pk}/similar/report/"


@pytest.fixture
def page(world):
    return client_of(world.user)


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


def test_the_page_polls_for_pictures_and_redirects_to_the_report(page, address, made):
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


def test_a_report_waits_for_a_long_queued_job(page, address):
    page.post(address)
    Job.objects.filter(pk=job().pk).update(created_at=timezone.now() - timedelta(hours=2))
    assert page.post(address).status_code == 202
    assert Job.objects.filter(kind=PICTURES_KIND).count() == 1


def test_a_polling_page_is_redirected_if_the_region_is_redrawn(world, page, address):
    page.post(address)
    roi = Roi.objects.select_related("canvas").get(pk=address.split("/")[2])
    changes = {"geometry": square(60, 60)}
    roi_update(roi=roi, user=world.user, expected_version=roi.version, changes=changes)
    answer = page.post(address, HTTP_HX_REQUEST="true")
    assert answer.status_code == 204
    assert answer["HX-Redirect"] == f"/rois/{roi.pk}/similar/"


def test_cached_pictures_need_no_job(page, address, neighbours, made):
    for roi in neighbours[reports.MAX_IN_REQUEST :]:
        page.get(f"/rois/{roi.pk}/thumbnail.jpg?v=1&width=64px")
    seen = len(made)
    assert page.post(address).status_code == 302
    assert not Job.objects.filter(kind=PICTURES_KIND).exists()
    assert len(made) == seen + reports.MAX_IN_REQUEST + 1


def test_a_report_is_made_without_an_unreadable_picture(page, address, neighbours):
    deleted = Canvas.objects.get(pk=neighbours[0].canvas_id)
    storage.resolve(deleted.pixels_path).unlink()
    page.post(address)
    job_run(job().pk)
    assert job().result == {"pictures": COUNT - 1, "unreadable": 1}
    assert page.post(address).status_code == 302
    assert ReportRegion.objects.filter(picture__isnull=True).count() == 1


def test_a_cancelled_job_leaves_its_pictures_for_the_next(world, page, address, made, monkeypatch):
    page.post(address)
    render = regions.region_render

    def cancelled(roi, *rest):
        if len(made) == 2:
            job_cancel(job=job(), user=world.user)
        return render(roi, *rest)

    monkeypatch.setattr(regions, "region_render", cancelled)
    monkeypatch.setattr(
        "portal.jobs.worker.context.PROGRESS_EVERY_S", 0
    )  # so that each picture checks
    job_run(job().pk)
    assert job().state == JobState.CANCELLED and 0 < len(made) < COUNT
    monkeypatch.setattr(regions, "region_render", render)
    assert page.post(address).status_code == 302  # who cancelled it may wait for it
    assert len(set(made)) == len(made) == COUNT + 1


def test_a_report_is_made_after_its_picture_job_failed(page, address, monkeypatch):
    page.post(address)
    with monkeypatch.context() as patch:
        patch.setattr("portal.search.tasks.reports.roi_thumbnail", lambda *_: 1 / 0)
        job_run(job().pk)
    assert job().state == JobState.FAILED
    assert page.post(address).status_code == 302


def test_a_retried_job_makes_only_missing_pictures(page, address, made):
    page.post(address)
    job_run(job().pk)
    Job.objects.filter(pk=job().pk).update(state=JobState.QUEUED, finished_at=None)
    job_run(job().pk)
    assert job().state == JobState.SUCCEEDED
    assert len(made) == COUNT


def test_rest_returns_the_job_of_the_pictures(world, address):
    api = APIClient()
    api.force_authenticate(world.user)
    params = {"roi": address.split("/")[2]}
    answer = api.post("/api/v1/reports/", params, format="json")
    assert answer.status_code == 202 and answer.json()["report"] is None
    assert answer.json()["job"]["kind"] == PICTURES_KIND
    job_run(job().pk)
    assert api.post("/api/v1/reports/", params, format="json").status_code == 201


def test_another_persons_job_is_not_waited_for(world, page, address, api_as, manager):
    page.post(address)
    answer = api_as(manager).post("/api/v1/reports/", {"roi": address.split("/")[2]}, format="json")
    assert answer.status_code == 202
    assert Job.objects.filter(kind=PICTURES_KIND).count() == 2

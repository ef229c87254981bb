"""A page that waits for its report: it says why it cannot come, once, and asks no more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from portal.annotations.services.rois import roi_create, roi_delete
from portal.jobs.models import Job
from portal.search.views import reports
from tests.clients import client_of
from tests.live_servers import DATABASE
from tests.portal.annotations.support import box

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

POLL_MS = 2_000


def test_polling_for_a_report_stops_when_its_region_was_deleted(
    browser: Any,
    open_server: Any,
    annotator: Any,
    ingest: Callable[[Path], Any],
    slide_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    canvas = ingest(slide_file)
    with DATABASE:
        client = client_of(annotator)
        roi = roi_create(canvas=canvas, user=annotator, geometry=box(20, 20, 400, 300)).roi
        job = Job.objects.create(lab=canvas.lab, kind="report_pictures", created_by=annotator)
        address = reverse("search:report_roi", args=[roi.pk])
        monkeypatch.setattr(reports, "roi_search", lambda **requests: None)
        monkeypatch.setattr(reports, "report_save", lambda result, user, interpretation: job)
        waiting = client.post(address).content.decode()
    context = browser.new_context(base_url=open_server.url)
    for name, cookie in client.cookies.items():
        context.add_cookies([{"name": name, "value": cookie.value, "url": open_server.url}])
    page = context.new_page()
    page.clock.install()  # the page polls as fast as the test lets its time pass
    requests: list[int] = []
    page.on(
        "response",
        lambda answer: requests.append(answer.status) if "POST" in answer.request.method else None,
    )
    page.route(
        f"**{address}",
        lambda route: (
            route.fulfill(body=waiting, content_type="text/html")
            if route.request.method == "GET"
            else route.continue_()
        ),
    )
    page.goto(address)
    expect(page.get_by_role("heading", name="Making the report")).to_be_visible()
    with DATABASE:
        roi_delete(roi=roi, user=annotator, expected_version=roi.version)
        roi.__class__.all_objects.filter(pk=roi.pk).delete()
    page.clock.fast_forward(POLL_MS)
    refused = page.locator("#report").get_by_role("alert")
    expect(refused).to_have_text("There is no such region.")
    before = len(requests)
    page.clock.run_for(3 * POLL_MS)
    assert (requests[-1], len(requests)) == (404, before)
    expect(page.locator("#toasts > *")).to_have_count(0)
    expect(page.get_by_role("link", name="Back to the results")).to_be_visible()
    context.close()

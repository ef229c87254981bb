"""A file of another tool in the browser: previewed, imported, taken back at once or by a job."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.browser.conftest import DATABASE, run_job

pytestmark = [pytest.mark.browser, pytest.mark.slow]
DIALOG = "[data-dialog=import]"


@pytest.fixture
def slide(ingest: Any, slide_file: Any) -> Any:
    """A slide's canvas."""
    return ingest(slide_file)


def _previewed(page: Any) -> None:
    """A file of one region and one that is none, sent and looked at."""
    ring = [[10, 10], [90, 10], [90, 80], [10, 10]]
    good = {"type": "Polygon", "coordinates": [ring]}
    flat = {"type": "Polygon", "coordinates": [[[5, 5], [9, 9], [5, 5], [5, 5]]]}
    features = [
        {"type": "Feature", "geometry": geometry, "properties": {"objectType": "annotation"}}
        for geometry in (good, flat)
    ]
    content = json.dumps({"type": "FeatureCollection", "features": features}).encode()
    page.click("[data-import-open]")
    file = {"name": "a.geojson", "mimeType": "application/geo+json", "buffer": content}
    page.set_input_files("[data-import-file]", file)
    _run(page)
    page.wait_for_selector(f"{DIALOG}[data-step=preview]")


def _imported(viewer: Any) -> None:
    page = viewer.page
    _previewed(page)
    page.keyboard.press("Enter")  # the button has the focus
    _run(page)
    page.wait_for_selector(f"{DIALOG}[data-step=done]")
    viewer.wait_count(1)


def _job(page: Any, kind: str) -> Any:
    """The job, as soon as the page has asked for it."""
    from portal.jobs.models import Job

    for _ in range(100):
        with DATABASE:
            job = Job.objects.filter(kind=kind, state="queued").first()
        if job is not None:
            return job
        page.wait_for_timeout(100)
    raise AssertionError(f"the page asked for no {kind}")


def _run(page: Any, kind: str = "rois_import") -> None:
    """The worker's part."""
    run_job(_job(page, kind))


@pytest.fixture
def undone_by_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One ROI is many."""
    monkeypatch.setattr("portal.annotations.services.imports.AT_ONCE", 0)


def test_a_file_is_previewed_imported_and_undone(open_viewer: Any, slide: Any) -> None:
    viewer = open_viewer(slide)
    page = viewer.page
    _previewed(page)
    summary = page.inner_text(f"{DIALOG} [data-import-summary]")
    assert ("1 new" in summary, "1 refused" in summary) == (True, True)
    assert "encloses no area" in page.inner_text("[data-import-reason-rows]")
    assert page.locator("[data-import-map] .import-line").count() == 1
    page.click("[data-dialog-close] >> visible=true")
    assert page.locator("[data-import-last]").is_hidden()
    _imported(viewer)
    page.click(f"{DIALOG} .btn--primary[data-dialog-close]")
    page.reload()  # it can be taken back still
    page.wait_for_selector("[data-viewer][data-ready]", timeout=30_000)
    page.click("[data-import-open]")
    page.click("[data-import-last]")
    assert "1 made" in page.inner_text(f"{DIALOG} [data-import-summary]")
    page.click("[data-import-undo]")
    viewer.wait_count(0)
    assert page.locator(f"{DIALOG}[open]").count() == 0
    page.click("[data-import-open]")
    assert page.locator("[data-import-last]").is_hidden()
    assert viewer.problems == []


def test_one_that_ends_without_its_page_can_be_taken_back_on_a_later_visit(
    open_viewer: Any, slide: Any
) -> None:
    viewer = open_viewer(slide)
    page, address = viewer.page, viewer.page.url
    _previewed(page)
    page.route("**/start/", lambda route: route.fetch())  # the page is left before the answer comes
    page.click("[data-import-go]")
    job = _job(page, "rois_import")
    page.goto("about:blank")
    run_job(job)
    page.goto(address)
    page.wait_for_selector("[data-viewer][data-ready]", timeout=30_000)
    page.click("[data-import-open]")
    page.click("[data-import-last]")
    assert "1 made" in page.inner_text(f"{DIALOG} [data-import-summary]")
    page.click("[data-import-undo]")
    viewer.wait_count(0)
    assert viewer.problems == []


def test_a_large_one_is_taken_back_by_a_job(
    open_viewer: Any, slide: Any, undone_by_jobs: None
) -> None:
    viewer = open_viewer(slide)
    page = viewer.page
    _imported(viewer)
    page.click("[data-import-undo]")
    page.wait_for_selector(f"{DIALOG}[data-step=busy]")
    assert page.inner_text("[data-import-what]") == "Undoing a.geojson"
    assert page.locator("[data-import-leave]").is_visible()
    _run(page, "rois_import_undo")
    viewer.wait_count(0)
    page.wait_for_selector(f"{DIALOG}:not([open])", state="attached")
    assert "Import undone: 1 removed." in page.inner_text("body")
    page.click("[data-import-open]")
    page.wait_for_selector(f"{DIALOG}[data-step=choose]")
    assert viewer.problems == []


def test_taking_back_goes_on_without_the_page_and_after_a_stop(
    open_viewer: Any, slide: Any, undone_by_jobs: None
) -> None:
    viewer = open_viewer(slide)
    page = viewer.page
    _imported(viewer)
    page.click("[data-import-undo]")
    _job(page, "rois_import_undo")
    page.reload()
    page.wait_for_selector("[data-viewer][data-ready]", timeout=30_000)
    page.click("[data-import-open]")
    page.wait_for_selector(f"{DIALOG}[data-step=busy]")
    assert page.inner_text("[data-import-what]") == "Undoing a.geojson"
    page.click("[data-import-stop]")
    page.wait_for_selector(f"{DIALOG}[data-step=done]")
    assert "Stopped. Undone so far: 0 removed." in page.inner_text("[data-import-summary]")
    assert page.inner_text("[data-import-undo]") == "Undo the rest"
    page.reload()
    page.wait_for_selector("[data-viewer][data-ready]", timeout=30_000)
    page.click("[data-import-open]")
    page.click("[data-import-last]")
    assert "Stopped. Undone so far: 0 removed." in page.inner_text("[data-import-summary]")
    page.click("[data-import-undo]")
    _run(page, "rois_import_undo")
    viewer.wait_count(0)
    assert viewer.problems == []

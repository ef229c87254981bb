"""A file of another tool in the browser: previewed, imported, taken back at once or by a job."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.annotations.models import VideoEvent
from tests.browser.conftest import run_job, wait_for_jobs
from tests.live_servers import DATABASE

pytestmark = pytest.mark.browser
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
    properties = {"objectType": "annotation", "classification": {"name": "None"}}
    features = [
        {"type": "Feature", "geometry": geometry, "properties": properties}
        for geometry in (good, flat)
    ]
    content = json.dumps({"type": "FeatureCollection", "features": features}).encode()
    _send(page, "a.geojson", content)


def _send(page: Any, name: str, content: bytes) -> None:
    page.click("[data-import-open]")
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    page.set_input_files("[data-import-file]", file)
    _run()
    page.wait_for_selector(f"{DIALOG}[data-step=preview]")


def _imported(viewer: Any) -> None:
    page = viewer.page
    _previewed(page)
    page.keyboard.press("Enter")  # the button has the focus
    _run()
    page.wait_for_selector(f"{DIALOG}[data-step=done]")
    viewer.wait_count(1)


def _lose_answer(route: Any) -> None:
    """Let the server handle a request whose answer never reaches the page."""
    route.fetch()
    route.abort()


def _run(kind: str = "rois_import") -> None:
    """Run the job of the page's request."""
    run_job(wait_for_jobs(kind)[0])


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
    labels = page.get_by_label("What None becomes").locator("option").all_inner_texts()
    assert labels[0] == "No label" and labels.count("No label") == 1
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


def _live_events() -> list[tuple[Any, ...]]:
    with DATABASE:
        rows = VideoEvent.objects.filter(deleted_at=None)
        return list(rows.values_list("name", "first_index", "last_index"))


def test_tags_of_cvat_are_events_of_a_video_until_they_are_undone(
    open_viewer: Any, ingest: Any, video_file: Any
) -> None:
    viewer = open_viewer(ingest(video_file))
    page = viewer.page
    tag = '<tag label="Caecum" source="manual"/>'
    frames = (f'<image id="{n}" name="frame_{n:06d}">{tag}</image>' for n in (2, 3, 7))
    _send(page, "tags.xml", f"<annotations>{''.join(frames)}</annotations>".encode())
    assert page.inner_text("[data-import-go]") == "Import 2 events"
    page.click("[data-import-go]")
    _run()
    page.wait_for_selector(f"{DIALOG}[data-step=done]")
    summary = page.inner_text(f"{DIALOG} [data-import-summary]")
    assert ("2 made" in summary, "2 of them events" in summary) == (True, True)
    assert _live_events() == [("Caecum", 2, 3), ("Caecum", 7, 7)]
    marks = page.locator("[data-event-lane] .event-mark")
    expect(marks).to_have_count(2)
    page.click("[data-import-undo]")
    page.wait_for_selector(f"{DIALOG}:not([open])", state="attached")
    assert _live_events() == []
    expect(marks).to_have_count(0)
    assert viewer.problems == []


def test_an_import_that_ended_after_its_page_was_closed_can_be_undone(
    open_viewer: Any, slide: Any
) -> None:
    viewer = open_viewer(slide)
    page, address = viewer.page, viewer.page.url
    _previewed(page)
    page.route("**/start/", _lose_answer)
    with page.expect_event("requestfailed"):
        page.click("[data-import-go]")
    (job,) = wait_for_jobs("rois_import")
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


def test_a_large_import_is_undone_by_a_job(
    open_viewer: Any, slide: Any, undone_by_jobs: None
) -> None:
    viewer = open_viewer(slide)
    page = viewer.page
    _imported(viewer)
    page.click("[data-import-undo]")
    page.wait_for_selector(f"{DIALOG}[data-step=busy]")
    assert page.inner_text("[data-import-what]") == "Undoing a.geojson"
    assert page.locator("[data-import-leave]").is_visible()
    _run("rois_import_undo")
    viewer.wait_count(0)
    page.wait_for_selector(f"{DIALOG}:not([open])", state="attached")
    assert "Import undone: 1 removed." in page.inner_text("body")
    page.click("[data-import-open]")
    page.wait_for_selector(f"{DIALOG}[data-step=choose]")
    assert viewer.problems == []


def test_undoing_an_import_continues_without_the_page_and_after_a_stop(
    open_viewer: Any, slide: Any, undone_by_jobs: None
) -> None:
    viewer = open_viewer(slide)
    page = viewer.page
    _imported(viewer)
    page.click("[data-import-undo]")
    wait_for_jobs("rois_import_undo")
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
    _run("rois_import_undo")
    viewer.wait_count(0)
    assert viewer.problems == []

"""Unfinished and unsaved work in a real browser: open outlines, drafts, conflicts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.viewer_page import settle
from tests.clients import client_of

pytestmark = pytest.mark.browser

SQUARE = [(700, 500), (1100, 500), (1100, 900), (700, 900)]


@pytest.fixture
def viewer(open_viewer: Any, ingest: Any, slide_file: Any) -> Any:
    """The annotator's viewer on the middle of a slide.

    A test names other users before it: an open page reads the database, whose tables SQLite locks.
    """
    page = open_viewer(ingest(slide_file)).centred()
    yield page
    assert page.problems == []


def begin(viewer: Any, points: list[tuple[float, float]]) -> None:
    """P, and a click for each corner; not finished."""
    places = viewer.places(points)
    viewer.key("p")
    for place in places:
        viewer.click(*place)


def test_an_unfinished_outline_continues_after_escape_another_tool_and_a_reload(
    viewer: Any,
) -> None:
    viewer.polygon([(300, 300), (500, 300), (500, 500)])
    viewer.wait_saved()
    begin(viewer, SQUARE[:3])
    viewer.key("Escape")
    viewer.key("Control+z")  # the outline again, not the ROI before it
    assert viewer.count() == 1
    viewer.key("m")
    assert "kept" in viewer.text("[data-stage-notice]")
    settle(viewer.page)
    viewer.centred()
    viewer.key("p")
    (last,) = viewer.places(SQUARE[3:])
    viewer.click(*last)
    viewer.key("Enter")
    viewer.wait_count(2)
    viewer.wait_saved()
    roi = viewer.stored()[-1]
    assert roi.area_px == pytest.approx(400 * 400, rel=0.02)
    assert viewer.count() == 2


def test_unsaved_changes_survive_the_page_and_stay_private(
    reviewer: Any, viewer: Any, open_viewer: Any
) -> None:
    page = viewer.page
    page.route("**/api/v1/rois/", lambda route: route.abort())
    viewer.polygon(SQUARE)
    viewer.wait_save_state("retry")
    assert "waits on this computer" in viewer.text("[data-save-text]")
    page.click("[data-save-details]")
    assert "New region" in viewer.text(".pending-list")
    page.unroute("**/api/v1/rois/")
    with viewer.database:
        from django.conf import settings

        client = client_of(reviewer)
    cookies = page.context.cookies()
    other = client.cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies([{"name": "sessionid", "value": other, "url": viewer.base}])
    page.click("[data-pending-retry]")  # the page of one person, the session of another
    page.get_by_text("Someone else is signed in").first.wait_for()
    viewer.centred()
    assert viewer.count() == 0
    assert viewer.stored() == []
    page.context.add_cookies(cookies)
    viewer.centred()
    viewer.wait_count(1)
    viewer.wait_saved()
    (roi,) = viewer.stored()
    assert (roi.version, roi.left) == (1, pytest.approx(700, abs=2))


def test_the_history_shows_outlines_and_deleted_regions_can_be_restored(viewer: Any) -> None:
    viewer.polygon(SQUARE)
    viewer.wait_saved()
    viewer.drag([(1100, 900), (1300, 1100)])
    viewer.wait_saved()
    history = viewer.tab("History")
    viewer.page.get_by_text("outline").first.wait_for()
    assert history.locator(".roi-preview").count() == 2
    assert viewer.page.locator(".roi-preview-before").count() == 1  # where the outline changed
    viewer.key("Delete")
    viewer.wait_count(0)
    viewer.wait_saved()
    viewer.page.click("[data-roi-deleted] summary")
    viewer.page.click("[data-roi-deleted] button")
    viewer.wait_count(1)
    viewer.wait_saved()
    (roi,) = viewer.stored()
    assert (roi.version, roi.right) == (4, pytest.approx(1300, abs=3))


def test_a_lost_response_creates_no_second_roi_or_version(viewer: Any) -> None:
    lost: list[str] = []

    def lose(route: Any) -> None:
        if route.request.method == "GET" or route.request.method in lost:
            route.continue_()
        else:
            lost.append(route.request.method)
            route.fetch()  # the server carries it out, and its answer goes nowhere
            route.abort()

    viewer.page.route("**/api/v1/rois/**", lose)
    viewer.polygon(SQUARE)
    viewer.wait_saved()
    viewer.page.fill("#roi-name", "Margin")
    viewer.page.press("#roi-name", "Enter")
    viewer.wait_save_state("retry")
    viewer.wait_saved()
    (roi,) = viewer.stored()
    assert lost == ["POST", "PATCH"]
    assert (roi.name, roi.version) == ("Margin", 2)


def test_conflicting_edits_of_two_browsers_are_merged_field_by_field(
    reviewer: Any, viewer: Any, open_viewer: Any
) -> None:
    viewer.page.route("**/live/**", lambda route: route.abort())  # has not heard of it yet
    viewer.polygon(SQUARE)
    viewer.wait_saved()
    (roi,) = viewer.stored()
    other = open_viewer(viewer.canvas, user=reviewer)
    other.open(f"roi={roi.pk}")
    other.page.fill("#roi-name", "Theirs")
    other.page.press("#roi-name", "Enter")
    other.key("2")
    other.wait_saved()
    theirs = other.stored()[0].label_id
    viewer.page.fill("#roi-name", "Mine")
    viewer.page.press("#roi-name", "Enter")
    viewer.page.wait_for_selector("[data-dialog=conflict][open]")
    # the label only they changed is chosen already, the name is not
    assert viewer.page.locator("[data-merge-save]").is_disabled()
    viewer.page.check("input[name=merge-name][value=mine]")
    viewer.page.click("[data-merge-save]")
    viewer.wait_saved()
    (roi,) = viewer.stored()
    assert (roi.name, roi.label_id) == ("Mine", theirs)
    before = roi.version
    viewer.key("Control+z")
    viewer.wait_saved()
    (roi,) = viewer.stored()
    assert (roi.name, roi.label_id, roi.version) == ("Theirs", theirs, before + 1)
    assert other.problems == []

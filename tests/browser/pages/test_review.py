"""The queue of review by its keys: J accepts, K rejects with a reason, the arrows walk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_create, roi_update
from portal.review.models import RoiComment
from tests.live_servers import DATABASE

pytestmark = pytest.mark.browser


@pytest.fixture
def waiting(ingest: Any, slide_file: Any, annotator: Any) -> list[Roi]:
    """Three regions that were submitted."""
    canvas = ingest(slide_file)
    rois = []
    for n, name in enumerate(("first", "second", "third")):
        ring = [[x + 200 * n, y] for x, y in ((100, 100), (220, 100), (220, 220), (100, 100))]
        geometry = {"type": "Polygon", "coordinates": [ring]}
        roi = roi_create(canvas=canvas, user=annotator, geometry=geometry, name=name).roi
        changes = {"review_state": "submitted"}
        roi_update(roi=roi, user=annotator, expected_version=1, changes=changes)
        rois.append(roi)
    return rois


@pytest.fixture
def open_queue(open_page: Callable[..., Any], reviewer: Any) -> Callable[[], Any]:
    """The page of the queue, as a reviewer."""

    def run() -> Any:
        page = open_page("/review/", user=reviewer)
        page.wait_for_selector("[data-review]")
        return page

    return run


def state_of(roi: Roi) -> str:
    with DATABASE:
        roi.refresh_from_db()
    return roi.review_state


def test_regions_are_reviewed_by_keyboard(
    waiting: list[Roi], open_queue: Callable[[], Any]
) -> None:
    page = open_queue()
    title = page.locator("[data-review-title]")
    names = page.locator("[data-review-pick]").evaluate_all(
        "all => all.map((o) => o.dataset.title)"
    )
    rois = {roi.name: roi for roi in waiting}
    first, second, third = names
    expect(title).to_have_text(first)
    page.keyboard.press("ArrowDown")
    expect(title).to_have_text(second)
    page.keyboard.press("ArrowUp")
    expect(title).to_have_text(first)
    page.keyboard.press("j")
    expect(title).to_have_text(second)
    assert state_of(rois[first]) == "accepted"
    page.keyboard.press("k")
    expect(page.locator("#review-text")).to_be_focused()  # a rejection says why
    assert state_of(rois[second]) == "submitted"
    page.keyboard.type("Too wide: jk")
    page.keyboard.press("Escape")
    page.keyboard.press("k")
    expect(title).to_have_text(third)
    assert (state_of(rois[second]), state_of(rois[third])) == ("rejected", "submitted")


def test_holding_a_key_reviews_one_region_only(
    waiting: list[Roi], open_queue: Callable[[], Any]
) -> None:
    page = open_queue()
    verdicts: list[str] = []
    page.on("request", lambda sent: verdicts.append(sent.url) if "/rois/review/" in sent.url else 0)
    page.keyboard.down("j")
    expect(page.locator(".review__row.is-done")).to_have_count(1)
    page.keyboard.down("j")  # still held: as a keyboard repeats it
    page.evaluate("() => new Promise(requestAnimationFrame)")  # the key has been handled
    assert len(verdicts) == 1
    assert [state_of(roi) for roi in waiting].count("accepted") == 1


def test_a_long_thread_is_shown_completely_and_takes_a_comment(
    waiting: list[Roi], open_queue: Callable[[], Any], annotator: Any
) -> None:
    with DATABASE:
        for roi in waiting:
            data = {"lab_id": roi.lab_id, "roi": roi, "version": roi.version, "author": annotator}
            RoiComment.objects.bulk_create(RoiComment(**data, text=f"{n}") for n in range(230))
    page = open_queue()
    rows = page.locator("[data-review-thread] > li")
    expect(rows).to_have_count(231)  # with the step that submitted it: more than a page holds
    page.locator("#review-text").fill("Larger than the last one?")
    page.locator("[data-review-comment]").evaluate("form => form.requestSubmit()")
    expect(rows).to_have_count(232)
    expect(rows.last).to_contain_text("Larger than the last one?")
    expect(page.locator("#review-text")).to_have_value("")

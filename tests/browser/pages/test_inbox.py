"""A rejected region reaches its author: badge, inbox, region, read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_create
from portal.review.services.comments import comment_add
from portal.review.services.verdicts import rois_review
from tests.browser.test_accessibility import Seen
from tests.live_servers import DATABASE

pytestmark = pytest.mark.browser
UNREAD_IS_ZERO = """async () => {
  const response = await fetch("/api/v1/notifications/unread/");
  return (await response.json()).count === 0;
}"""


@pytest.fixture
def submitted(ingest: Any, slide_file: Any, annotator: Any) -> Roi:
    """A region of the annotator that waits for review."""
    canvas = ingest(slide_file)
    ring = [[100, 100], [320, 100], [320, 300], [100, 100]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    roi = roi_create(canvas=canvas, user=annotator, geometry=geometry, name="margin").roi
    rois_review(user=annotator, rois=[(roi.pk, 1)], state="submitted")
    roi.refresh_from_db()
    return roi


def test_a_rejection_is_seen_opened_and_read(
    submitted: Roi,
    open_page: Callable[..., Any],
    open_server: Any,
    annotator: Any,
    reviewer: Any,
) -> None:
    queue = open_page("/review/", user=reviewer)
    queue.wait_for_selector("[data-review]")
    queue.keyboard.press("k")
    expect(queue.locator("#review-text")).to_be_focused()
    queue.keyboard.type("The margin is missing")
    queue.keyboard.press("Escape")
    queue.keyboard.press("k")
    expect(queue.locator(".review__row.is-done")).to_have_count(1)

    page = open_page("/cases/", user=annotator)
    inbox = page.get_by_role("link", name="Inbox 1 unread")
    expect(inbox).to_be_visible()
    inbox.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/inbox/")
    entry = page.locator(".inbox__entry")
    expect(entry).to_contain_text("The margin is missing")
    seen = Seen(page, open_server.url)
    seen.look("the inbox")
    assert not seen.complaints, "\n".join(seen.complaints)
    with page.expect_request(lambda sent: sent.url.endswith("/read/")):
        entry.get_by_role("link").click()
    page.wait_for_url(f"**/canvases/{submitted.canvas_id}/?roi={submitted.pk}*")
    page.wait_for_selector("[data-viewer][data-ready]")
    page.wait_for_function(UNREAD_IS_ZERO, polling=200)  # the request outlives its page
    page.goto(f"{open_server.url}/work/")
    work = page.get_by_role("row").filter(has_text="The margin is missing")
    expect(work.get_by_role("link", name="margin")).to_be_visible()
    seen.look("rejected regions in the work list")
    assert not seen.complaints, "\n".join(seen.complaints)
    page.goto(f"{open_server.url}/inbox/")
    expect(page.get_by_role("link", name="Inbox", exact=True)).to_be_visible()
    expect(page.locator(".inbox__entry.is-unread")).to_have_count(0)


def test_the_badge_is_updated_while_a_page_is_open(
    submitted: Roi, open_page: Callable[..., Any], annotator: Any, reviewer: Any
) -> None:
    page = open_page("/account/notifications/", user=annotator)
    number = page.locator("[data-inbox-number]")
    expect(number).to_be_hidden()
    with DATABASE:
        for n in range(3):
            comment_add(roi=submitted, user=reviewer, text=f"Look here, {n}: @{annotator.email}")
        comment_add(roi=submitted, user=reviewer, text="Is this the margin?")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(number).to_have_text("4")
    narrow = open_page("/inbox/", user=annotator, viewport={"width": 768, "height": 768})
    narrow.get_by_role("button", name="Mark all as read").click()
    expect(narrow.locator("[data-inbox-number]")).to_be_hidden()


_SHOW_MANY = """() => {
  document.querySelector("[data-inbox-number]").textContent = "99+";
  document.querySelector("[data-inbox-count]").hidden = false;
}"""


def test_a_count_above_99_does_not_touch_the_next_word(
    open_page: Callable[..., Any], annotator: Any
) -> None:
    page = open_page("/cases/", user=annotator)
    page.evaluate(_SHOW_MANY)
    count = page.locator("[data-inbox-count]").bounding_box()
    assert count["x"] + count["width"] <= page.locator(".bar__help").bounding_box()["x"] + 1

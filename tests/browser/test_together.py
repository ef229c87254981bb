"""Two people on one canvas, in real browsers: presence, edits, and a verdict that reaches both."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SQUARE = [(700, 500), (1100, 500), (1100, 900), (700, 900)]
SOON_MS = 6_000  # two questions of a page; without them it would never come


def test_edits_and_a_verdict_reach_the_other_page(
    open_viewer: Any, ingest: Any, slide_file: Any, reviewer: Any
) -> None:
    canvas = ingest(slide_file)
    mine = open_viewer(canvas).centred()
    theirs = open_viewer(canvas, user=reviewer)
    mine.polygon(SQUARE)
    mine.wait_saved()
    theirs.wait_count(1)
    theirs.page.locator("[data-roi-list] [role=option]").first.click()
    mine.page.locator("[data-people] .avatar").wait_for(timeout=SOON_MS)
    mine.page.locator("[data-roi-others]").wait_for(timeout=2 * SOON_MS)
    mine.page.click("[data-roi-review] [data-review-to=submitted]")
    mine.page.get_by_text("Submitted", exact=True).wait_for(timeout=SOON_MS)
    theirs.page.goto(f"{theirs.base}/review/")
    theirs.page.locator("[data-review-row][aria-current]").wait_for()
    theirs.key("k")  # without a reason
    theirs.page.keyboard.type("Too wide at the left.")
    theirs.key("Escape")
    theirs.key("k")
    theirs.page.locator("[data-review-row].is-done").wait_for()
    mine.page.get_by_text("Rejected", exact=True).wait_for(timeout=SOON_MS)
    mine.page.click("[data-review-talk] summary")
    mine.page.get_by_text("Too wide at the left.").wait_for(timeout=SOON_MS)
    (roi,) = mine.stored()
    assert (roi.version, roi.review_state) == (3, "rejected")
    assert mine.problems == theirs.problems == []

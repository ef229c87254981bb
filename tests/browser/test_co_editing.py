"""Two people on one canvas, in real browsers: presence, edits, and a verdict that reaches both."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.browser

SQUARE = [(700, 500), (1100, 500), (1100, 900), (700, 900)]


_WHITE_ON_NOTHING = """() => {
  const canvas = document.querySelector(".canvas-people canvas");
  if (!canvas) return null;
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  let white = 0;
  let bare = 0;
  for (let at = 0; at < data.length; at += 4) {
    if (Math.min(data[at], data[at + 1], data[at + 2], data[at + 3]) < 250) continue;
    white += 1;
    const around = [-4, 4, -4 * width, 4 * width];
    if (around.some((step) => data[at + step + 3] === 0)) bare += 1;
  }
  return white ? { bare } : null;
}"""
"""White pixels of the layer of other people next to a transparent one; null without white."""


def test_initials_of_others_have_a_background(
    open_viewer: Any, ingest: Any, slide_file: Any, reviewer: Any
) -> None:
    """White initials directly on pale tissue cannot be read."""
    canvas = ingest(slide_file)
    first_viewer = open_viewer(canvas).centred()
    first_viewer.polygon(SQUARE)
    first_viewer.wait_saved()
    second_viewer = open_viewer(canvas, user=reviewer)
    second_viewer.page.locator("[data-roi-list] [role=option]").first.click()
    drawn = first_viewer.page.wait_for_function(_WHITE_ON_NOTHING)
    assert drawn.json_value() == {"bare": 0}


def test_edits_and_reviews_appear_on_another_open_page(
    open_viewer: Any, ingest: Any, slide_file: Any, reviewer: Any
) -> None:
    canvas = ingest(slide_file)
    first_viewer = open_viewer(canvas).centred()
    second_viewer = open_viewer(canvas, user=reviewer)
    first_viewer.polygon(SQUARE)
    first_viewer.wait_saved()
    second_viewer.wait_count(1)
    second_viewer.page.locator("[data-roi-list] [role=option]").first.click()
    first_viewer.page.locator("[data-collaborators] .avatar").wait_for()
    first_viewer.page.locator("[data-roi-others]").wait_for()
    first_viewer.page.click("[data-roi-review] [data-review-to=submitted]")
    review = first_viewer.page.get_by_role("group", name="Review")
    review.get_by_text("Submitted", exact=True).wait_for()
    second_viewer.page.goto(f"{second_viewer.base}/review/")
    second_viewer.page.locator("[data-review-row][aria-current]").wait_for()
    second_viewer.key("k")  # without a reason
    second_viewer.page.keyboard.type("Too wide at the left.")
    second_viewer.key("Escape")
    second_viewer.key("k")
    second_viewer.page.locator("[data-review-row].is-done").wait_for()
    review.get_by_text("Rejected", exact=True).wait_for()
    first_viewer.tab("Comments")
    first_viewer.page.get_by_text("Too wide at the left.").wait_for()
    (roi,) = first_viewer.stored()
    assert (roi.version, roi.review_state) == (3, "rejected")
    assert first_viewer.problems == second_viewer.problems == []

"""The side panel on small screens: what one does with a selected region is in sight."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.annotations.services.rois import roi_create
from portal.mosaics.services.mosaics import mosaic_create
from tests.browser.conftest import run_job

pytestmark = pytest.mark.browser

SIZES = [(1280, 720), (1366, 768), (1024, 768), (820, 1180), (768, 1024)]
ACTIONS = ["Submit for review", "Comments", "History", "Delete"]
SIMILAR = {"slide": ["Similar cases", "Find similar here"], "video": ["Find again"]}
SIMILAR["mosaic"] = ["Frames", "Find again"]
IS_COVERED = """(element) => {
  const { left, top, width, height } = element.getBoundingClientRect();
  const found = document.elementFromPoint(left + width / 2, top + height / 2);
  const isInside = top >= 0 && top + height <= innerHeight && left + width <= innerWidth;
  return !isInside || !element.contains(found);
}"""
REFUSED = {"type": "about:blank", "title": "Bad request", "status": 400, "code": "invalid"}


@pytest.fixture(params=["slide", "video", "mosaic"])
def canvas(
    request: pytest.FixtureRequest,
    ingest: Any,
    annotator: Any,
    slide_file: Path,
    sweep_file: Path,
) -> Any:
    if request.param == "slide":
        return ingest(slide_file)
    video = ingest(sweep_file)
    if request.param == "video":
        return video
    submitted = mosaic_create(video=video.video, user=annotator)
    run_job(submitted.job)
    submitted.mosaic.refresh_from_db()
    return submitted.mosaic.canvas


def test_the_primary_actions_of_a_region_are_visible_on_small_screens(
    open_viewer: Any, canvas: Any, annotator: Any, reviewer: Any
) -> None:
    ring = [[40, 40], [140, 40], [140, 140], [40, 140], [40, 40]]
    frame = {"frame_index": 0} if canvas.kind == "video" else {}
    geometry = {"type": "Polygon", "coordinates": [ring]}
    rois = [
        roi_create(canvas=canvas, user=annotator, geometry=geometry, **frame).roi for _ in range(9)
    ]
    viewer = open_viewer(canvas, f"roi={rois[0].pk}")
    open_viewer(canvas, f"roi={rois[0].pk}", user=reviewer)
    page = viewer.page
    panel = page.get_by_role("complementary")
    body = json.dumps(REFUSED | {"detail": "This name is not allowed here."})
    answer = {"status": 400, "content_type": "application/problem+json", "body": body}
    page.route(
        f"**/api/v1/rois/{rois[0].pk}/",
        lambda route: (
            route.fulfill(**answer) if route.request.method == "PATCH" else route.continue_()
        ),
    )
    page.fill("#roi-name", "Polyp of the ascending colon, second biopsy")
    page.press("#roi-name", "Enter")
    expect(panel.get_by_text("This name is not allowed here.")).to_be_visible()
    expect(panel.get_by_text("also selected this region")).to_be_visible(timeout=15_000)
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        for name in [*SIMILAR[canvas.kind], *ACTIONS]:
            action = panel.locator("a, button, summary").filter(visible=True)
            action = action.filter(has_text=re.compile(rf"^\s*{name}")).or_(
                action.and_(page.locator(f"[aria-label='{name}']"))
            )
            assert not action.first.evaluate(IS_COVERED), (width, height, name)
        for part in ("[data-panel-toggle]", "[data-save-text]"):
            assert not page.locator(part).evaluate(IS_COVERED), (width, height, part)
        deleted = panel.locator("[data-roi-deleted]")
        assert deleted.evaluate("fold => fold.scrollHeight <= fold.clientHeight"), (width, height)
        rows = panel.locator(".roi-row")
        seen = [row for row in rows.all() if not row.evaluate(IS_COVERED)]
        assert len(seen) >= 2, (width, height)
    assert viewer.problems == []

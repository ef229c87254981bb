"""Query and hit on the compare page, both outlined, for a query that is not an ROI."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from portal.annotations.models import Roi
from portal.search.models import QuerySource
from portal.search.services.queries import QueryData, query_create
from tests.browser.conftest import run_queued
from tests.browser.similar.test_explanation import BOXES, SIDE, box, slides
from tests.browser.viewer_page import query_of, settle
from tests.live_servers import DATABASE

__all__ = ["slides"]
pytestmark = pytest.mark.browser

DRAWN = """(canvases) => canvases.map((one) => {
  const { data } = one.getContext("2d").getImageData(0, 0, one.width, one.height);
  let count = 0;
  for (let at = 3; at < data.length; at += 4) count += data[at] > 200;
  return count;
}).reduce((sum, one) => sum + one, 0)"""


def outlined(page: Any, pane: int) -> int:
    """Pixels of the query's outline drawn on a pane."""
    return int(page.locator(f'[data-pane="{pane}"] .canvas-query canvas').evaluate_all(DRAWN))


def test_a_query_area_is_outlined_when_compared_with_its_hit(
    open_viewer: Any, slides: Any, annotator: Any
) -> None:
    canvas, other = slides
    left, top = BOXES[0]
    geometry = box(left + 40, top + 30, left + 40 + SIDE, top + 30 + SIDE)
    requested = QueryData(source=QuerySource.AREA, canvas_id=canvas.pk, geometry=geometry)
    with DATABASE:
        query = query_create(data=requested, user=annotator)
    run_queued()
    viewer = open_viewer(canvas)
    page = viewer.page
    page.goto(f"{viewer.base}/queries/{query.pk}/")
    page.locator("[data-hits] > li").first.get_by_role(
        "link", name="Compare with the query"
    ).click()
    page.wait_for_selector("[data-compare][data-ready][data-panes='2']", timeout=30_000)
    settle(page)
    assert outlined(page, 1) > 500
    assert outlined(page, 2) == 0
    settled = query_of(page)
    first, second = ([float(part) for part in text.split(",")] for text in settled["v"])
    assert first[:2] == pytest.approx([left + 40 + SIDE / 2, top + 30 + SIDE / 2], abs=20)
    with DATABASE:
        hit = Roi.objects.get(pk=settled["roi"][-1])
    assert hit.canvas_id == other.pk
    assert second[:2] == pytest.approx([hit.centroid_x, hit.centroid_y], abs=20)
    assert first[2] == pytest.approx(second[2]), "at one magnification"
    page.reload()  # the query is part of the URL
    page.wait_for_selector("[data-compare][data-ready][data-panes='2']", timeout=30_000)
    settle(page)
    assert outlined(page, 1) > 500
    page.locator('[data-pane="1"] [data-pane-close]').click()
    page.wait_for_selector("[data-compare][data-ready][data-panes='1']", timeout=30_000)
    assert "query=" not in page.url
    expect(page.locator(".canvas-query")).to_have_count(0)
    assert viewer.problems == []

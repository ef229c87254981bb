"""What is not finished or not saved yet, in a real browser: open outlines, drafts, conflicts."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SQUARE = [(700, 500), (1100, 500), (1100, 900), (700, 900)]


@pytest.fixture
def viewer(open_viewer: Any, ingest: Any, slide_file: Any) -> Any:
    """The annotator's viewer on the middle of a slide."""
    page = open_viewer(ingest(slide_file)).centred()
    yield page
    assert page.problems == []


def begin(viewer: Any, points: list[tuple[float, float]]) -> None:
    """P, and a click for each corner; not finished."""
    places = viewer.places(points)
    viewer.key("p")
    for place in places:
        viewer.page.mouse.click(*place)
        viewer.page.wait_for_timeout(300)


def test_an_outline_left_open_is_gone_on_with_after_esc_another_tool_and_a_reload(
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
    viewer.page.wait_for_timeout(200)
    viewer.centred()
    viewer.key("p")
    (last,) = viewer.places(SQUARE[3:])
    viewer.page.mouse.click(*last)
    viewer.page.wait_for_timeout(300)
    viewer.key("Enter")
    viewer.wait_count(2)
    viewer.wait_saved()
    roi = viewer.stored()[-1]
    assert roi.area_px == pytest.approx(400 * 400, rel=0.02)
    assert viewer.count() == 2

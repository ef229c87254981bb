"""Ruler, angle, line and knife: by clicks, and by press, drag and release."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.viewer_page import Point

pytestmark = pytest.mark.browser

START, END = (600.0, 500.0), (1000.0, 800.0)
CORNER, SIDE = (1000.0, 1000.0), (1400.0, 1000.0)
ABOVE = (1000.0, 600.0)
"""Third point of a right angle at CORNER whose first leg ends at SIDE."""
HINT = "[data-tool-hint]"


@pytest.fixture
def viewer(open_viewer: Any, ingest: Any, slide_file: Any) -> Any:
    page = open_viewer(ingest(slide_file)).centred()
    yield page
    assert page.problems == []


def clicks(viewer: Any, *points: Point) -> None:
    for place in viewer.places(points):
        viewer.click(*place)


def drags(viewer: Any, first: Point, last: Point) -> None:
    middle = ((first[0] + last[0]) / 2, (first[1] + last[1]) / 2 + 30)
    viewer.drag([first, middle, last])


def lit(viewer: Any) -> list[str]:
    return [
        button.get_attribute("data-tool")
        for button in viewer.page.locator("[data-rail] [data-tool][aria-pressed=true]").all()
    ]


def test_line_ruler_and_knife_take_clicks_and_drags(viewer: Any) -> None:
    before = viewer.link()
    for gesture in (clicks, drags):
        viewer.key("l")
        assert lit(viewer) == ["line"]
        gesture(viewer, START, END)
        assert viewer.page.locator(HINT).is_hidden()
        viewer.key("Escape")
        viewer.key("Shift+M")
        assert lit(viewer) == ["ruler"]
        gesture(viewer, START, END)
        assert measured(viewer) == "250 µm"
        assert lit(viewer) == ["ruler"]
    viewer.wait_saved()
    lines = [roi.geometry["coordinates"] for roi in viewer.stored()]
    assert lines == [[list(START), list(END)]] * 2
    for at, gesture in enumerate((clicks, drags)):
        top = 200 + 900 * at
        viewer.key("r")
        viewer.drag([(600, top), (800, top + 50), (1000, top + 200)])
        viewer.key("k")
        assert lit(viewer) == ["split"]
        gesture(viewer, (800, top - 40), (800, top + 240))
        viewer.wait_count(4 + 2 * at)
    viewer.wait_saved()
    areas = [roi.area_px for roi in viewer.stored() if roi.shape == "polygon"]
    assert len(areas) == 4 and min(areas) > 15_000
    assert sum(areas) == pytest.approx(160_000, abs=2)
    after = viewer.link()
    assert [after[name] for name in "xyz"] == [before[name] for name in "xyz"]


def test_an_angle_takes_both_gestures_and_does_not_snap_to_outlines(viewer: Any) -> None:
    """An outline 8 px (4 screen px) from the corner must not change a right angle."""
    viewer.key("r")
    viewer.drag([(1008, 1008), (1100, 1100), (1200, 1200)])
    viewer.wait_saved()
    viewer.key("Shift+L")
    drags(viewer, ABOVE, CORNER)
    clicks(viewer, SIDE)
    assert measured(viewer) == "90.0°"
    clicks(viewer, ABOVE, CORNER, SIDE)
    assert measured(viewer) == "90.0°"


def test_the_hint_names_the_next_step_and_a_double_click_places_one_point(viewer: Any) -> None:
    hint = viewer.page.locator(HINT)
    expect(hint).to_be_hidden()
    viewer.key("l")
    first = hint.inner_text()
    (place,) = viewer.places([START])
    viewer.page.mouse.dblclick(*place)
    expect(hint).not_to_have_text(first)
    viewer.key("Escape")
    expect(hint).to_have_text(first)
    viewer.key("Escape")
    expect(hint).to_be_hidden()
    assert lit(viewer) == ["move"]
    assert viewer.stored() == []


def test_dragging_a_tool_never_pans_and_the_middle_button_does(viewer: Any) -> None:
    before = viewer.link()
    for key in ("p", "l", "k", "Shift+M", "Shift+L", ".", "Shift+H", "r", "b"):
        viewer.key(key)
        (first, last) = viewer.places([START, END])
        viewer.page.mouse.move(*first)
        viewer.page.mouse.down()
        viewer.page.mouse.move(*last, steps=4)
        viewer.page.mouse.up()
    assert viewer.link()["x"] == before["x"]
    viewer.key("l")
    viewer.page.mouse.move(500, 400)
    viewer.page.mouse.down(button="middle")
    viewer.page.mouse.move(600, 400, steps=4)
    viewer.page.mouse.up(button="middle")
    assert float(viewer.link()["x"]) < float(before["x"]) - 100


def measured(viewer: Any) -> str:
    """The measure in the hint, once there is one."""
    hint = viewer.page.locator(HINT)
    expect(hint).to_contain_text(re.compile(r"\d (µm|mm)|°"))
    return str(hint.inner_text()).split(". Esc")[0]

"""Regions of a fixed size: placed by one click or by touch, as the panel of the tool says."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from portal.archive.models import Canvas
from tests.browser.test_touch import fingers

pytestmark = pytest.mark.browser

MPP = 2.0
"""The image of 2000 x 1500 px then has 4 x 3 mm."""


@pytest.fixture
def canvas(ingest: Any, slide_file: Any) -> Any:
    """A slide on which a circle of 2.37 mm² has room."""
    canvas = ingest(slide_file)
    Canvas.objects.filter(pk=canvas.pk).update(mpp_x=MPP, mpp_y=MPP)
    canvas.refresh_from_db()
    return canvas


def area_mm2(roi: Any) -> float:
    return float(roi.area_px * MPP * MPP / 1e6)


def test_a_circle_a_square_and_a_grid_are_placed_by_one_click_each(
    open_viewer: Any, canvas: Any
) -> None:
    viewer = open_viewer(canvas).centred(scale=3.0)
    page = viewer.page
    panel = page.locator("[data-fixed-size]")
    page.get_by_role("button", name="Fixed size").click()
    expect(panel).to_be_visible()
    middle, right = viewer.places([(1000, 750), (1500, 700)])
    page.mouse.move(*middle)
    viewer.click(*middle)
    expect(panel).to_be_hidden()
    viewer.wait_count(1)
    expect(page.locator("[data-roi-facts]")).to_contain_text("circle 2.37 mm²")
    viewer.wait_saved()
    (circle,) = viewer.stored()
    assert area_mm2(circle) == pytest.approx(2.37, rel=0.0005)
    assert circle.properties == {"Fixed size": "circle 2.37 mm²"}

    viewer.key("Shift+g")
    panel.get_by_label("Grid of fields").check()
    panel.get_by_label("Fields", exact=True).fill("6")
    panel.get_by_label("Area of one, mm²").fill("0.04")
    expect(panel.get_by_label("Side of one, µm")).to_have_value("200.0")
    panel.get_by_label("Space between, µm").fill("20")
    expect(panel.get_by_role("status")).to_have_text("6 fields, 0.24 mm²")
    page.mouse.move(*middle)
    viewer.click(*middle)
    viewer.wait_count(7)
    expect(page.locator("[data-selection-count]")).to_have_text("6 fields, 0.24 mm²")
    viewer.wait_saved()
    fields = [roi for roi in viewer.stored() if roi.pk != circle.pk]
    assert {roi.properties["Fixed size"] for roi in fields} == {
        f"field {number} of 6, 0.04 mm²" for number in range(1, 7)
    }
    assert len({roi.properties["Field grid"] for roi in fields}) == 1
    viewer.key("Control+z")
    viewer.wait_count(1)

    viewer.key("Shift+g")
    expect(panel.get_by_label("Grid of fields")).to_be_checked()  # the last choice
    panel.get_by_label("Square, 1 mm²").check()
    viewer.key("Escape")
    expect(panel).to_be_hidden()
    viewer.key("Shift+g")
    viewer.cdp = page.context.new_cdp_session(page)
    fingers(viewer, "touchStart", right)
    fingers(viewer, "touchEnd")
    viewer.wait_count(2)
    viewer.wait_saved()
    square = viewer.stored()[-1]
    assert area_mm2(square) == pytest.approx(1.0, rel=0.0005)

    moved_by_keyboard(viewer, square)
    edited(viewer, square)
    assert viewer.problems == []


def moved_by_keyboard(viewer: Any, square: Any) -> None:
    """The square keeps its size."""
    viewer.key("Control+Shift+ArrowRight")
    viewer.wait_saved()
    square.refresh_from_db()
    assert square.version == 2
    assert square.properties == {"Fixed size": "square 1 mm²"}
    assert area_mm2(square) == pytest.approx(1.0, rel=0.0005)


def edited(viewer: Any, square: Any) -> None:
    """With a vertex elsewhere it is an ordinary region."""
    viewer.drag([(square.right, square.bottom), (square.right + 40, square.bottom + 60)])
    expect(viewer.page.locator("[data-stage-notice]")).to_contain_text(
        "no longer has its fixed size"
    )
    viewer.wait_saved()
    square.refresh_from_db()
    assert square.properties == {}


def test_fields_stay_inside_the_selected_region(open_viewer: Any, canvas: Any) -> None:
    viewer = open_viewer(canvas).centred(scale=3.0)
    viewer.polygon([(600, 400), (1300, 400), (1300, 1100), (600, 1100)])
    viewer.wait_count(1)
    viewer.key("Shift+g")
    panel = viewer.page.locator("[data-fixed-size]")
    panel.get_by_label("Grid of fields").check()
    panel.get_by_label("Fields", exact=True).fill("50")
    panel.get_by_label("Area of one, mm²").fill("0.16")  # 200 px: three by three fit
    (at,) = viewer.places([(950, 750)])
    viewer.click(*at)
    viewer.wait_count(10)
    expect(viewer.page.locator("[data-stage-notice]")).to_contain_text(
        "Only 9 of 50 fields have room inside the selected region."
    )
    viewer.wait_saved()
    fields = [roi for roi in viewer.stored() if roi.properties]
    assert all(roi.left >= 600 and roi.right <= 1300 for roi in fields)


def test_without_a_pixel_size_the_tool_explains_why_it_is_disabled(
    open_viewer: Any, ingest: Any, slide_file: Any
) -> None:
    canvas = ingest(slide_file)
    Canvas.objects.filter(pk=canvas.pk).update(mpp_x=None, mpp_y=None)
    viewer = open_viewer(canvas).centred()
    button = viewer.page.get_by_role(
        "button", name="Fixed size: the pixel size of this image is unknown"
    )
    expect(button).to_have_attribute("aria-disabled", "true")
    viewer.key("Shift+g")
    expect(viewer.page.locator("[data-stage-notice]")).to_contain_text(
        "The size of a pixel is unknown"
    )
    expect(viewer.page.locator("[data-fixed-size]")).to_be_hidden()

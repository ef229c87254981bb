"""Jumps and the way back, objectives, and outlines that cross themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import expect

from portal.annotations.services.rois import roi_create
from tests.browser.viewer_page import settle

pytestmark = pytest.mark.browser

NOTICE = "[data-stage-notice]"
EIGHT = [(600.0, 500.0), (1000.0, 900.0), (1000.0, 500.0), (600.0, 900.0)]
"""Corners in the order in which they are clicked: two triangles of 40,000 square pixels."""


def square(left: float, top: float, side: float) -> dict[str, Any]:
    right, low = left + side, top + side
    ring = [[left, top], [right, top], [right, low], [left, low], [left, top]]
    return {"type": "Polygon", "coordinates": [ring]}


def view(viewer: Any) -> dict[str, str]:
    return {name: value for name, value in viewer.link().items() if name in ("x", "y", "z", "t")}


def test_shift_b_returns_from_jumps_made_by_the_list(
    open_viewer: Any, ingest: Any, slide_file: Path, annotator: Any
) -> None:
    canvas = ingest(slide_file)
    for left in (300, 1500):
        roi_create(canvas=canvas, user=annotator, geometry=square(left, 300, 100))
    viewer = open_viewer(canvas).centred()
    places = [view(viewer)]
    for at in (0, 1):
        viewer.page.locator(".roi-row").nth(at).click()
        places.append(view(viewer))
    assert places[0] != places[1] != places[2]
    for place in (places[1], places[0]):
        viewer.key("Shift+B")
        assert view(viewer) == place
    assert "roi" not in viewer.link()
    viewer.key("Shift+B")
    expect(viewer.page.locator(NOTICE)).to_contain_text("no earlier place")
    assert viewer.problems == []


def test_shift_b_returns_to_the_frame_before_a_jump(
    open_viewer: Any, ingest: Any, video_file: Path, annotator: Any
) -> None:
    canvas = ingest(video_file)
    roi_create(canvas=canvas, user=annotator, geometry=square(40, 40, 60), frame_index=20)
    viewer = open_viewer(canvas)
    viewer.page.locator(".roi-row").click()
    viewer.wait_text("[data-frame-index]", "Frame 21 / 40")
    viewer.key("Shift+B")
    viewer.wait_text("[data-frame-index]", "Frame 1 / 40")
    assert viewer.problems == []


def test_objectives_of_an_image_without_a_pixel_size_lead_to_setting_it(
    open_viewer: Any, ingest: Any, tmp_path: Path
) -> None:
    path = tmp_path / "still.png"
    Image.new("RGB", (1200, 900), (228, 190, 205)).save(path)
    viewer = open_viewer(ingest(path))
    before = view(viewer)
    viewer.key("z")
    expect(viewer.page.locator(NOTICE)).to_contain_text("size of a pixel is unknown")
    assert view(viewer) == before
    viewer.page.locator(f"{NOTICE} button").click()
    expect(viewer.page.locator("[data-dialog=pixel-size]")).to_be_visible()
    assert viewer.problems == []


def test_an_outline_that_crosses_itself_becomes_a_region_of_two_parts(
    open_viewer: Any, ingest: Any, slide_file: Path
) -> None:
    viewer = open_viewer(ingest(slide_file)).centred()
    viewer.polygon(EIGHT)
    expect(viewer.page.locator(NOTICE)).to_contain_text("crosses itself")
    viewer.wait_saved()
    (roi,) = viewer.stored()
    assert roi.geometry["type"] == "MultiPolygon"
    assert roi.area_px == pytest.approx(2 * 40_000, rel=0.001)
    viewer.key("Control+z")
    viewer.wait_count(0)
    viewer.polygon([(600, 500), (602, 500), (650, 501), (602, 500.5)])  # a sliver
    expect(viewer.page.locator(NOTICE)).to_contain_text("Too small")
    viewer.key("Control+z")
    settle(viewer.page)
    (place,) = viewer.places([(650, 700)])
    viewer.click(*place)
    viewer.key("Enter")
    viewer.wait_count(1)
    viewer.wait_saved()
    (roi,) = viewer.stored()
    assert (roi.left, roi.bottom) == pytest.approx((600, 700), abs=2)
    assert viewer.problems == []

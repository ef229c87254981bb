"""The workbench by real pointer events: what is stored, to the pixel."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.browser.viewer_page import settle

pytestmark = pytest.mark.browser

LEFT, RIGHT = (600.0, 400.0, 900.0, 700.0), (800.0, 500.0, 1200.0, 900.0)
BLOT = (707.0, 550.0)
"""Middle of a dark blot of the slide, 166 x 129 px."""


@pytest.fixture
def canvas(ingest: Any, slide_file: Any) -> Any:
    return ingest(slide_file)


@pytest.fixture
def viewer(open_viewer: Any, canvas: Any) -> Any:
    """The annotator's viewer on the middle of a slide, two level-0 pixels to one of the screen."""
    page = open_viewer(canvas).centred()
    yield page
    assert page.problems == []


def place(viewer: Any, *boxes: tuple[float, float, float, float]) -> list[Any]:
    """Rectangles that are there already."""
    from portal.annotations.services.rois import roi_create

    rois = []
    with viewer.database:
        user = viewer.canvas.case.created_by
        for left, top, right, bottom in boxes:
            ring = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
            geometry = {"type": "Polygon", "coordinates": [ring]}
            rois.append(roi_create(canvas=viewer.canvas, user=user, geometry=geometry).roi)
    viewer.centred()
    return rois


def bounds(roi: Any) -> tuple[float, float, float, float]:
    return roi.left, roi.top, roi.right, roi.bottom


def click(viewer: Any, *points: tuple[float, float], is_adding: bool = False) -> None:
    for x, y in viewer.places(points):
        if is_adding:
            viewer.page.keyboard.down("Shift")
        viewer.click(x, y)
        viewer.page.keyboard.up("Shift")


def test_several_regions_are_moved_relabelled_united_and_undone(viewer: Any) -> None:
    place(viewer, LEFT, RIGHT)
    viewer.key("Control+a")
    viewer.wait_text("[data-selection-count]", "2 regions · 0.0625 mm²")
    requests: list[str] = []
    viewer.page.on("request", lambda request: requests.append(f"{request.method} {request.url}"))
    viewer.drag([(700, 600), (760, 560), (800, 500)])
    viewer.wait_saved()
    first, second = viewer.stored()
    assert bounds(first) == pytest.approx((700, 300, 1000, 600), abs=2)
    assert bounds(second) == pytest.approx((900, 400, 1300, 800), abs=2)
    assert (first.right - first.left, second.bottom - second.top) == (300, 400)
    writes = [sent for sent in requests if sent.startswith(("POST", "PATCH", "DELETE"))]
    assert [write.rpartition("/api/v1")[2] for write in writes] == ["/rois/bulk/"]
    viewer.key("u")
    viewer.wait_count(1)
    viewer.wait_saved()
    (united,) = viewer.stored()
    assert united.area_px == pytest.approx(300 * 300 + 400 * 400 - 100 * 200, abs=1)
    viewer.key("Control+z")
    viewer.key("Control+z")
    viewer.wait_count(2)
    viewer.wait_saved()
    assert [bounds(roi) for roi in viewer.stored()] == [LEFT, RIGHT]


def test_regions_are_subtracted_filled_and_split(viewer: Any) -> None:
    place(viewer, (600, 400, 1000, 800), (700, 500, 800, 600))
    click(viewer, (950, 750))
    click(viewer, (750, 550), is_adding=True)
    viewer.key("Shift+U")
    viewer.wait_saved()
    holed, inner = viewer.stored()
    assert (holed.area_px, inner.area_px) == (160_000 - 10_000, 10_000)
    assert len(holed.geometry["coordinates"]) == 2
    viewer.page.click("[data-command=holes]")
    viewer.wait_saved()
    assert viewer.stored()[0].area_px == 160_000
    viewer.key("k")
    viewer.drag([(540, 600), (800, 600), (1060, 600)])
    viewer.wait_count(3)
    viewer.wait_saved()
    halves = [roi for roi in viewer.stored() if roi.pk != inner.pk]
    assert [roi.area_px for roi in halves] == pytest.approx([80_000, 80_000], abs=900)
    assert sum(roi.area_px for roi in halves) == pytest.approx(160_000, abs=1)


def test_a_locked_region_cannot_be_changed_until_unlocked(viewer: Any) -> None:
    place(viewer, LEFT)
    click(viewer, (700, 600))
    viewer.key("Control+k")
    viewer.wait_saved()
    viewer.drag([(700, 600), (800, 700)])
    viewer.key("Delete")
    settle(viewer.page)
    (roi,) = viewer.stored()
    assert (roi.is_locked, bounds(roi), roi.deleted_at) == (True, LEFT, None)
    viewer.key("Control+k")
    viewer.wait_saved()
    viewer.key("Control+ArrowRight")
    viewer.key("Control+Shift+ArrowDown")
    viewer.wait_saved()
    assert bounds(viewer.stored()[0]) == (602, 420, 902, 720)  # one and ten pixels of the screen


def test_a_box_selects_the_regions_it_touches_and_shift_adds(viewer: Any) -> None:
    place(viewer, LEFT, RIGHT)
    viewer.key("s")
    viewer.drag([(500, 300), (600, 400), (700, 450)])
    expect(viewer.page.locator(".roi-row[aria-selected=true]")).to_have_count(1)
    viewer.page.keyboard.down("Shift")
    viewer.drag([(1100, 800), (1200, 850), (1300, 1000)])
    viewer.page.keyboard.up("Shift")
    viewer.wait_text("[data-selection-count]", "2 regions · 0.0625 mm²")
    viewer.key("Delete")
    viewer.wait_count(0)
    viewer.wait_saved()
    assert viewer.stored() == []


@pytest.mark.parametrize(
    ("width", "height"), [(683, 384), (342, 192)], ids=["200 percent", "400 percent"]
)
def test_an_enlarged_page_can_be_used_by_keyboard(viewer: Any, width: int, height: int) -> None:
    viewer.page.set_viewport_size({"width": width, "height": height})  # of 1366 x 768
    room = viewer.page.locator("[data-map]").bounding_box()
    assert (room["width"], room["height"]) == (width, pytest.approx(288, abs=2))
    assert viewer.page.evaluate("document.documentElement.scrollWidth") == width
    viewer.key("o")
    viewer.key("Enter")
    viewer.wait_saved()
    (drawn,) = viewer.stored()
    assert (drawn.shape, drawn.centroid_x) == ("ellipse", pytest.approx(1000, abs=3))
    viewer.key("Control+ArrowLeft")
    viewer.wait_saved()
    assert viewer.stored()[0].left == drawn.left - 2
    rail = viewer.page.locator("[data-rail] button:not([disabled])")
    rail.first.focus()
    viewer.key("ArrowRight")
    assert (
        rail.nth(1).evaluate("button => button === document.activeElement && button.tabIndex") == 0
    )


def test_a_region_of_a_video_frame_is_copied_to_a_slide(
    open_viewer: Any, ingest: Any, slide_file: Any, video_file: Any
) -> None:
    viewer = open_viewer(ingest(video_file))
    viewer.key("f")
    viewer.wait_text(".timeline-text strong", re.compile(r"\b2\b"))
    viewer.key("w")
    viewer.page.mouse.click(*viewer.places([(21, 96)])[0])  # the first stripe, white in odd frames
    viewer.wait_saved()
    viewer.key("o")
    viewer.drag([(100, 50), (150, 90), (200, 120)])
    viewer.wait_saved()
    stripe, ellipse = viewer.stored()
    assert bounds(stripe) == pytest.approx((0, 0, 43, 192), abs=1)
    assert bounds(ellipse) == pytest.approx((100, 50, 200, 120), abs=1)
    assert (stripe.frame_index, ellipse.frame_index, ellipse.shape) == (1, 1, "ellipse")
    viewer.key("Control+a")
    viewer.key("Control+c")
    viewer.canvas = ingest(slide_file)
    viewer.centred()
    viewer.key("Control+Shift+v")
    viewer.wait_count(2)
    viewer.wait_saved()
    copies = viewer.stored()
    assert [bounds(roi) for roi in copies] == [bounds(stripe), bounds(ellipse)]
    assert {roi.frame_index for roi in copies} == {None}
    assert [roi.shape for roi in copies] == ["polygon", "ellipse"]
    assert viewer.problems == []


def test_a_ruler_of_known_length_sets_the_pixel_size(
    open_viewer: Any, ingest: Any, annotator: Any, tmp_path: Path
) -> None:
    from portal.archive.services.scale import canvas_scale_set

    path = tmp_path / "still.png"
    Image.new("RGB", (1200, 900), (228, 190, 205)).save(path)
    viewer = open_viewer(ingest(path)).centred(scale=1.0)
    page = viewer.page
    assert viewer.text("[data-readout=scale]").endswith("px")
    viewer.key("Shift+M")
    for place in viewer.places([(400, 450), (800, 450)]):
        viewer.click(*place)
    page.click("[data-pixel-size-open]")
    page.fill("[data-known-length]", "100")
    assert float(page.input_value("[data-pixel-size]")) == pytest.approx(0.25, rel=0.01)
    with page.expect_navigation():
        page.click("[data-dialog=pixel-size] button[type=submit]")
    page.wait_for_selector("[data-viewer][data-ready]")
    assert viewer.text("[data-readout=scale]").endswith("µm")
    assert "set by hand" in viewer.text("[data-pixel-size-open]")
    assert float(viewer.link()["z"]) == pytest.approx(1.0)
    page.click("[data-pixel-size-open]")
    with page.expect_navigation():
        page.click("[data-pixel-size-clear]")
    page.wait_for_selector("[data-viewer][data-ready]")
    assert viewer.text("[data-readout=scale]").endswith("px")
    assert viewer.problems == []
    with viewer.database:  # another person sets it, of which this page shows nothing
        canvas = type(viewer.canvas).objects.get(pk=viewer.canvas.pk)
        canvas_scale_set(canvas=canvas, user=canvas.case.created_by, mpp_x=0.5)
    page.click("[data-pixel-size-open]")
    page.fill("[data-pixel-size]", "0.3")
    page.click("[data-dialog=pixel-size] button[type=submit]")
    expect(page.locator("[data-pixel-problem]")).to_contain_text("Someone else changed this")
    with viewer.database:
        canvas.refresh_from_db()
    assert canvas.mpp_x == 0.5


def test_points_lines_and_descriptions_are_saved_with_their_measures(viewer: Any) -> None:
    """Each click is one step; a click near a point or a line selects it; undo goes one back."""
    viewer.key("l")
    viewer.drag([(600, 500), (900, 900)])
    viewer.wait_saved()
    (line,) = viewer.stored()
    assert (line.shape, line.geometry["type"]) == ("line", "LineString")
    assert line.geometry["coordinates"] == [[600, 500], [900, 900]]
    viewer.wait_text("[data-roi-facts] dd >> nth=0", "250 µm")
    viewer.key(".")
    click(viewer, (1000, 500), (1100, 600), (1200, 500))
    viewer.wait_text("[data-roi-facts] dd >> nth=0", "3 points")
    viewer.key("Control+z")
    viewer.wait_text("[data-roi-facts] dd >> nth=0", "2 points")
    viewer.key("Enter")
    click(viewer, (1300, 1000))
    viewer.wait_saved()
    viewer.key("Escape")
    viewer.key("m")
    assert [image.geometry["type"] for image in viewer.stored()] == [
        "LineString",
        "MultiPoint",
        "Point",
    ]
    click(viewer, (1108, 606))
    expect(viewer.page.locator("[data-roi-similar]")).to_be_hidden()
    viewer.tab("Properties")
    viewer.page.fill("[data-roi-description]", "Two mitoses")
    viewer.page.fill("[data-property-key]", "Grade")
    viewer.page.click(".property-add button")
    viewer.page.keyboard.type("2")
    viewer.page.keyboard.press("Tab")
    viewer.wait_saved()
    points = viewer.stored()[1]
    assert (points.description, points.properties) == ("Two mitoses", {"Grade": "2"})
    viewer.page.fill("[data-roi-search]", "grade mitoses")
    viewer.wait_text("[data-roi-count]", "1 of 3")


def test_a_proposed_outline_is_changed_accepted_and_undone(viewer: Any) -> None:
    page = viewer.page
    bar = page.locator("[data-suggestion]")
    viewer.key("Shift+H")
    (place,) = viewer.places([BLOT])
    page.mouse.click(*place)
    expect(bar).to_have_attribute("data-state", "shown")
    assert viewer.stored() == []
    viewer.key("Escape")
    expect(bar).to_be_hidden()
    page.mouse.click(*place)
    expect(bar).to_have_attribute("data-state", "shown")
    likely = int(bar.locator("input").input_value())
    viewer.key("+")
    viewer.key("-")
    viewer.key("-")
    assert int(bar.locator("input").input_value()) == max(likely - 1, 0)
    viewer.key("+")
    viewer.key("Enter")
    expect(bar).to_be_hidden()
    viewer.wait_saved()
    (roi,) = viewer.stored()
    assert (roi.left, roi.top) == pytest.approx((624, 485), abs=12)
    assert (roi.right, roi.bottom) == pytest.approx((790, 615), abs=12)
    viewer.key("Control+z")
    viewer.wait_count(0)
    viewer.wait_saved()

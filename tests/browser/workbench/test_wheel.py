"""The wheel: it zooms with the very click, and hundreds of ROIs are painted in parts afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.viewer_page import settle

pytestmark = pytest.mark.browser

CLICK = 120  # of most wheels
STEP = 2 ** (CLICK / 300)  # see wheel_zoom.ts
A_FRAME = 100  # see sliced_paint.ts
ROIS = 25, 20  # in columns and rows
PITCH, SIDE = 16.0, 11.0

COUNT_FRAMES = """() => {
  window.frame = 0; window.wheelAt = null; window.zoomedAt = null;
  const count = () => { window.frame += 1; requestAnimationFrame(count); };
  requestAnimationFrame(count);
  addEventListener("wheel", () => { window.wheelAt ??= window.frame; }, { capture: true });
  new MutationObserver(() => { if (window.wheelAt !== null) window.zoomedAt ??= window.frame; })
    .observe(document.querySelector("[data-readout=zoom]"), { childList: true });
}"""
COUNT_OUTLINES = """() => {
  window.outlines = []; let inFrame = 0;
  const close = CanvasRenderingContext2D.prototype.closePath;
  CanvasRenderingContext2D.prototype.closePath = function () { inFrame += 1; close.call(this); };
  const count = () => { window.outlines.push(inFrame); inFrame = 0; requestAnimationFrame(count); };
  requestAnimationFrame(count);
}"""


@pytest.fixture
def canvas(ingest: Any, slide_file: Any) -> Any:
    return ingest(slide_file)


def corner(n: int) -> tuple[float, float]:
    """Corner of the nth ROI, around the middle of the slide."""
    column, row = n % ROIS[0], n // ROIS[0]
    return 1000 + (column - ROIS[0] / 2) * PITCH, 750 + (row - ROIS[1] / 2) * PITCH


def draw_many(canvas: Any, user: Any) -> int:
    """More than are painted within one frame."""
    from portal.annotations.models import Roi

    rows = []
    for n in range(ROIS[0] * ROIS[1]):
        x, y = corner(n)
        right, bottom = x + SIDE, y + SIDE
        ring = [[x, y], [right, y], [right, bottom], [x, bottom], [x, y]]
        rows.append(
            Roi(
                **{"lab_id": canvas.lab_id, "canvas": canvas, "created_by": user},
                geometry={"type": "Polygon", "coordinates": [ring]},
                **{"left": x, "top": y, "right": right, "bottom": bottom, "area_px": SIDE**2},
                **{"centroid_x": x + SIDE / 2, "centroid_y": y + SIDE / 2},
            )
        )
    return len(Roi.objects.bulk_create(rows))


def turn(viewer: Any, clicks: int) -> None:
    """The wheel towards the image, over its middle."""
    box = viewer.page.locator("[data-map]").bounding_box()
    viewer.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for _ in range(clicks):
        viewer.page.mouse.wheel(0, -CLICK)


def test_wheel_steps_zoom_within_the_next_frames_and_add_up(open_viewer: Any, canvas: Any) -> None:
    viewer = open_viewer(canvas).centred(2.0)
    viewer.page.evaluate(COUNT_FRAMES)
    turn(viewer, 1)
    settle(viewer.page)
    began, zoomed = viewer.page.evaluate("[window.wheelAt, window.zoomedAt]")
    assert zoomed - began <= 2
    turn(viewer, 4)
    link = viewer.link()
    assert float(link["z"]) == pytest.approx(2.0 / STEP**5, rel=1e-6)
    assert (float(link["x"]), float(link["y"])) == pytest.approx((1000, 750), abs=1)
    assert viewer.problems == []


def test_hundreds_of_rois_are_repainted_incrementally_in_place(
    open_viewer: Any, canvas: Any, annotator: Any
) -> None:
    count = draw_many(canvas, annotator)
    viewer = open_viewer(canvas).centred(1.0)
    viewer.wait_count(count)
    edges = [(x + SIDE / 2, y) for x, y in (corner(212), corner(237), corner(288))]
    settle(viewer.page)
    before = viewer.colours(edges)
    viewer.page.evaluate(COUNT_OUTLINES)
    turn(viewer, 2)
    painted = "window.outlines.reduce((sum, one) => sum + one, 0)"
    for _ in range(40):  # each of them with its edge, in all
        if viewer.page.evaluate(painted) >= 3 * count:
            break
        settle(viewer.page)
    assert viewer.page.evaluate(painted) >= 3 * count
    assert max(viewer.page.evaluate("window.outlines")) <= 2 * A_FRAME  # two parts in one count
    settle(viewer.page)
    for was, now in zip(before, viewer.colours(edges), strict=True):
        assert now == pytest.approx(was, abs=40)
    middle = viewer.colours([(edges[0][0], edges[0][1] + SIDE / 2)])[0]
    assert middle != pytest.approx(before[0], abs=40)
    expect(viewer.page.locator("[data-roi-count]")).to_have_text(str(count))
    assert viewer.problems == []

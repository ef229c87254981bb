"""Every tool by real pointer events, on a slide, on a frame of a video and on a mosaic.

One page for each canvas. The screen is a board of cells in which one thing each is drawn; what is
stored is compared with where the pointer was, to a hundredth of a pixel where a tool is exact.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from PIL import Image
from playwright.sync_api import expect
from shapely.geometry import LineString, shape
from shapely.geometry.base import BaseGeometry

from portal.mosaics.services.mosaics import mosaic_create
from tests.browser.conftest import run_job
from tests.browser.viewer_page import DOUBLE_CLICK_OVER, settle
from tests.browser.workbench.board import CELL, COLUMNS, ROWS, Board

pytestmark = [pytest.mark.browser, pytest.mark.endurance]

SCREEN = {"width": 1600, "height": 1000}
SCALES = {"slide": 1.0, "frame": 0.25, "mosaic": 0.25}
"""Level-0 pixels to one of the screen: the board fits into each of them."""
BRUSH_PX = 20.0
STORED = 0.011
"""Stored are hundredths of a pixel."""
SHADE = 24
"""Default tolerance of the wand, as in wand.ts."""


@pytest.fixture(params=["slide", "frame", "mosaic"])
def board(
    request: pytest.FixtureRequest,
    open_viewer: Any,
    ingest: Any,
    annotator: Any,
    slide_file: Path,
    video_file: Path,
    sweep_file: Path,
) -> Iterator[Board]:
    """The middle of a canvas of this kind; of the video, its second frame."""
    kind = request.param
    if kind == "mosaic":
        requested = mosaic_create(video=ingest(sweep_file).video, user=annotator)
        run_job(requested.job)
        requested.mosaic.refresh_from_db()
        canvas = requested.mosaic.canvas
    else:
        canvas = ingest(slide_file if kind == "slide" else video_file)
    viewer = open_viewer(canvas)
    viewer.page.set_viewport_size(SCREEN)
    viewer.centred(SCALES[kind])
    if kind == "frame":
        viewer.key("f")
        viewer.wait_exact()
    settle(viewer.page)
    yield Board(viewer, SCALES[kind])
    assert viewer.problems == []


def off(roi: Any, expected: BaseGeometry) -> float:
    """The area by which what is stored differs."""
    return float(shape(roi.geometry).symmetric_difference(expected).area)


def is_exactly(roi: Any, expected: BaseGeometry) -> bool:
    """Compare with the drawn outline, to the stored hundredths."""
    return off(roi, expected) <= STORED * expected.length


def test_every_tool_stores_the_expected_geometry(board: Board) -> None:
    the_wand_takes_what_has_the_colour(board)
    drawn(board)
    changed(board)
    combined(board)
    frames = {(roi.frame_index, roi.frame_pts is None) for roi in board.stored()}
    assert frames == {(1, False) if board.viewer.canvas.kind == "video" else (None, True)}
    all_of_it_is_undone_and_redone(board)


def the_wand_takes_what_has_the_colour(board: Board) -> None:
    """All within its outline is of the shade under the pointer; Alt takes some of it away."""
    picture = np.asarray(Image.open(io.BytesIO(board.page.screenshot())).convert("RGB"), np.int16)
    seed, at = evenest(board, picture)
    board.key("w")
    board.click(at)
    (roi,) = board.stored()
    area = shape(roi.geometry)
    assert area.contains(shapely.Point(board.canvas(at)))
    inner = area.buffer(-4 * board.scale)  # its edge is smoothed
    assert not inner.is_empty
    column, row = np.meshgrid(np.arange(CELL * COLUMNS), np.arange(CELL * ROWS))
    x, y = board.canvas((0, 0, 0, 0))
    inside = shapely.contains_xy(inner, x + column * board.scale, y + row * board.scale)
    drawn_pixels = picture[
        board.top : board.top + CELL * ROWS, board.left : board.left + CELL * COLUMNS
    ]
    assert inside.sum() > 100
    assert (np.abs(drawn_pixels - seed).max(-1)[inside] <= SHADE + 2).mean() > 0.98
    board.key("b")
    board.keyboard.down("Alt")
    board.drag(at, (*at[:3], at[3] + 1))
    board.keyboard.up("Alt")
    left = [shape(image.geometry) for image in board.stored()]
    erased = LineString([board.canvas(at), board.canvas((*at[:3], at[3] + 1))])
    assert all(item.distance(erased) > (BRUSH_PX - 1.5) * board.scale for item in left)
    assert sum(item.area for item in left) < area.area
    board.key("m", "Control+a", "Delete")
    assert board.stored() == []


def evenest(board: Board, picture: Any) -> tuple[Any, tuple[float, ...]]:
    """The place of the board around which colours differ least, and its colour."""
    best: tuple[float, Any, tuple[float, ...]] = (math.inf, None, ())
    for x in range(20, CELL * COLUMNS - 20, 10):
        for y in range(20, CELL * ROWS - 20, 10):
            across, down = board.left + x, board.top + y
            patch = picture[down - 12 : down + 13, across - 12 : across + 13]
            spread = float(np.ptp(patch.reshape(-1, 3), axis=0).max())
            if spread < best[0]:
                best = (spread, picture[down, across], (0, 0, x, y))
    return best[1], best[2]


def drawn(board: Board) -> None:
    """A thing of each kind in the cells of the first row."""
    corners = [(2, 0, *at) for at in ((10, 20), (85, 12), (70, 80), (40, 50), (15, 75))]
    way = [(3, 0, *at) for at in ((20, 20), (80, 20), (80, 70), (50, 45), (20, 70))]
    points = [(5, 0, *at) for at in ((20, 30), (80, 40), (45, 70))]
    stroke = [(6, 0, *at) for at in ((25, 60), (75, 60))]
    board.rectangle((0, 0), 10, 12, 88, 71)
    board.key("o")
    board.drag((1, 0, 10, 20), (1, 0, 50, 50), (1, 0, 90, 80))
    board.polygon(*corners)
    board.key("Shift+P")
    board.drag(*way, way[0])
    board.key("l")
    board.drag((4, 0, 10, 20), (4, 0, 90, 70))
    board.key(".")
    board.click(*points)
    board.key("Enter", "b")
    board.drag(*stroke)
    board.drag((6, 0, 50, 60), (6, 0, 50, 30))  # begins within: added
    board.keyboard.down("Alt")
    board.drag((6, 0, 30, 95), (6, 0, 70, 95))
    board.keyboard.up("Alt")
    board.key("m")
    cells = board.by_cell()
    rectangle, ellipse, polygon, freehand, line, point, painted = (
        cells[column, 0][0] for column in range(7)
    )
    assert len(board.stored()) == 7
    assert is_exactly(rectangle, board.box((0, 0), 10, 12, 88, 71))
    bounds = board.box((1, 0), 10, 20, 90, 80)
    assert ellipse.shape == "ellipse"
    assert (ellipse.left, ellipse.top, ellipse.right, ellipse.bottom) == pytest.approx(
        bounds.bounds, abs=STORED
    )
    assert ellipse.area_px == pytest.approx(math.pi / 4 * bounds.area, rel=0.001)
    assert is_exactly(polygon, board.ring(*corners))
    assert len(polygon.geometry["coordinates"][0]) == len(corners) + 1
    outline = board.ring(*way)
    assert off(freehand, outline) < 0.7 * board.scale * outline.length
    assert len(freehand.geometry["coordinates"][0]) < 20
    assert (line.shape, line.geometry["type"]) == ("line", "LineString")
    ends = [board.canvas(at) for at in ((4, 0, 10, 20), (4, 0, 90, 70))]
    assert np.array(line.geometry["coordinates"]) == pytest.approx(np.array(ends), abs=STORED)
    assert (point.shape, point.geometry["type"]) == ("point", "MultiPoint")
    placed = np.array([board.canvas(at) for at in points])
    assert np.array(point.geometry["coordinates"]) == pytest.approx(placed, abs=STORED)
    assert off(painted, brushed(board)) < 0.5 * board.scale * brushed(board).length


def brushed(board: Board) -> BaseGeometry:
    """Region that the three strokes leave."""
    radius = BRUSH_PX * board.scale

    def stroke(*way: tuple[float, float]) -> BaseGeometry:
        return LineString([board.canvas((6, 0, *at)) for at in way]).buffer(radius)

    added = stroke((25, 60), (75, 60)) | stroke((50, 60), (50, 30))
    return added - stroke((30, 95), (70, 95))


def changed(board: Board) -> None:
    """By its vertices, as a whole, by its handles; each in a cell of the second row."""
    corners = [(0, 1, *at) for at in ((20, 20), (80, 20), (50, 80))]
    board.polygon(*corners)
    board.drag((0, 1, 80, 20), (0, 1, 75, 40), (0, 1, 70, 35))  # a vertex
    board.drag((0, 1, 35, 50), (0, 1, 25, 55), (0, 1, 15, 62))  # a new one, on the edge
    board.polygon(*[(1, 1, *at) for at in ((10, 20), (80, 20), (80, 80), (10, 80))])
    board.page.evaluate(DOUBLE_CLICK_OVER)  # or it would be the second of two clicks
    board.click((1, 1, 80, 80), held="Alt")
    board.page.evaluate(DOUBLE_CLICK_OVER)  # it goes once it cannot be the first of two
    board.drag((1, 1, 80, 20), (1, 1, 40, 40), (0, 1, 73, 38))  # snaps to that of its neighbour
    board.rectangle((2, 1), 20, 30, 60, 90)
    board.drag((2, 1, 40, 60), (2, 1, 60, 50), (2, 1, 53, 46))  # moved whole
    board.rectangle((3, 1), 10, 35, 90, 75)
    board.page.wait_for_selector("[data-handle=turn]")
    board.keyboard.down("Shift")  # snaps to 15 degrees
    board.drag((3, 1, 50, 35 - 26), (3, 1, 80, 30), (3, 1, 95, 56))
    board.keyboard.up("Shift")
    board.key("o")
    board.drag((4, 1, 10, 30), (4, 1, 40, 40), (4, 1, 60, 70))
    board.page.wait_for_selector("[data-handle=e]")
    board.drag((4, 1, 60, 50), (4, 1, 70, 55), (4, 1, 88, 55))  # its right handle
    board.rectangle((5, 1), 10, 10, 40, 40)
    board.key("Control+d", "Control+ArrowRight", "Control+Shift+ArrowDown")
    board.rectangle((6, 1), 20, 20, 80, 80)
    board.key("Control+c")
    board.mouse.move(*board.screen((7, 1, 50, 50)))
    board.key("Control+v", "Control+k", "Delete", "Control+ArrowRight")  # locked: it stays
    cells = board.by_cell()
    edited, snapped = cells[0, 1]  # the other reaches into its cell now
    places = [(0, 1, *at) for at in ((20, 20), (70, 35), (50, 80), (15, 62))]
    assert is_exactly(edited, board.ring(*places))
    three = [(1, 1, 10, 20), (0, 1, 70, 35), (1, 1, 10, 80)]
    assert is_exactly(snapped, board.ring(*three))
    assert is_exactly(cells[2, 1][0], board.box((2, 1), 33, 16, 73, 76))
    assert is_exactly(cells[3, 1][0], board.box((3, 1), 30, 15, 70, 95))
    ellipse = cells[4, 1][0]
    wider = board.box((4, 1), 10, 30, 88, 70)
    assert (ellipse.left, ellipse.top, ellipse.right, ellipse.bottom) == pytest.approx(
        wider.bounds, abs=2 * STORED
    )
    assert (ellipse.shape, ellipse.area_px) == (
        "ellipse",
        pytest.approx(math.pi / 4 * wider.area, rel=0.001, abs=STORED * wider.length),
    )
    step = (
        max(board.scale, 1) / board.scale
    )  # arrows go by pixels of the image where they are larger
    first, second = sorted(cells[5, 1], key=lambda roi: roi.left)
    assert is_exactly(first, board.box((5, 1), 10, 10, 40, 40))
    by = (16 + step, 16 + 10 * step)
    assert is_exactly(second, board.box((5, 1), 10 + by[0], 10 + by[1], 40 + by[0], 40 + by[1]))
    assert is_exactly(cells[6, 1][0], board.box((6, 1), 20, 20, 80, 80))
    (copy,) = cells[7, 1]
    assert is_exactly(copy, board.box((7, 1), 20, 20, 80, 80))
    assert copy.is_locked


def combined(board: Board) -> None:
    """Pairs of rectangles in the third row, united, subtracted, intersected; one cut by a line."""
    pairs = {"u": 0, "Shift+U": 2, "Shift+X": 4}
    first, other = (20, 10, 140, 70), (100, 40, 180, 90)
    for key, column in pairs.items():
        board.rectangle((column, 2), *first)
        board.rectangle((column, 2), *other)
        board.click((column, 2, 50, 30))
        board.click((column, 2, 160, 80), held="Shift")
        board.key(key)
    board.rectangle((6, 2), 20, 20, 180, 80)
    board.key("k")
    board.drag((6, 2, 80, 5), (6, 2, 80, 95))
    board.rectangle((0, 3), 10, 10, 90, 90)
    board.rectangle((0, 3), 30, 30, 60, 60)
    board.click((0, 3, 20, 20))
    board.click((0, 3, 45, 45), held="Shift")
    board.key("Shift+U")
    expect(board.page.locator("[data-stage-notice]")).to_contain_text("Subtract")
    holed = [
        roi for roi in board.stored() if shape(roi.geometry).boundary.geom_type == "MultiLineString"
    ]
    outer, hole = board.box((0, 3), 10, 10, 90, 90), board.box((0, 3), 30, 30, 60, 60)
    assert [is_exactly(roi, outer - hole) for roi in holed] == [True]
    board.page.click("[data-command=holes]")
    stored = board.stored()
    assert sum(is_exactly(roi, outer) for roi in stored) == 1
    expected = []
    for key, column in pairs.items():
        a, b = board.box((column, 2), *first), board.box((column, 2), *other)
        expected += {"u": [a | b], "Shift+U": [a - b, b], "Shift+X": [a & b, b]}[key]
    expected += [board.box((6, 2), 20, 20, 80, 80), board.box((6, 2), 80, 20, 180, 80)]
    for area in expected:
        assert sum(is_exactly(roi, area) for roi in stored) == 1, area
    inside = [roi for roi in stored if board.canvas((0, 2, 0, 0))[1] < roi.top]
    assert len(inside) == len(expected) + 2


def all_of_it_is_undone_and_redone(board: Board) -> None:
    """Step by step until nothing is left, and back until all is as it was."""
    before = {str(roi.pk): (roi.geometry, roi.shape) for roi in board.stored()}
    undo = board.page.locator("[data-action=undo]")
    steps = 0
    while undo.is_enabled():
        board.key("Control+z")
        steps += 1
    assert board.stored() == []
    for _ in range(steps):
        board.key("Control+Shift+z")
    after = {str(roi.pk): (roi.geometry, roi.shape) for roi in board.stored()}
    assert after == before

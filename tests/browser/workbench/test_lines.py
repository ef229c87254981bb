"""Lines and points by the pointer: taken hold of anywhere, moved whole, and by their ends."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.browser

LINE = [(600.0, 500.0), (900.0, 900.0)]
BETWEEN = (690.0, 620.0)
"""A place on the line, far from both ends."""


@pytest.fixture
def viewer(open_viewer: Any, ingest: Any, slide_file: Any) -> Any:
    """A line is drawn, and selected with the move tool in hand."""
    page = open_viewer(ingest(slide_file)).centred()
    page.key("l")
    page.drag(LINE)
    page.wait_saved()
    page.key("m")
    yield page
    assert page.problems == []


def places(viewer: Any) -> list[Any]:
    viewer.wait_saved()
    return [roi.geometry["coordinates"] for roi in viewer.stored()]


def test_a_line_and_its_ends_are_moved_and_undone(viewer: Any) -> None:
    viewer.drag([BETWEEN, (BETWEEN[0] + 160, BETWEEN[1] - 80)])
    assert places(viewer) == [[[760, 420], [1060, 820]]]
    viewer.drag([(1060, 820), (1100, 700)])
    assert places(viewer) == [[[760, 420], [1100, 700]]]
    viewer.key("Control+z")
    assert places(viewer) == [[[760, 420], [1060, 820]]]
    viewer.key("Control+z")
    assert places(viewer) == [[[600, 500], [900, 900]]]
    viewer.key("Control+Shift+z")
    assert places(viewer) == [[[760, 420], [1060, 820]]]


def test_selected_lines_and_points_move_together(viewer: Any) -> None:
    viewer.key(".")
    for x, y in viewer.places([(1000, 500), (1100, 600)]):
        viewer.click(x, y)
    viewer.key("Enter")
    viewer.key("m")
    assert places(viewer) == [[[600, 500], [900, 900]], [[1000, 500], [1100, 600]]]
    viewer.key("Control+a")
    viewer.drag([(1100, 600), (1140, 640)])
    assert places(viewer) == [[[640, 540], [940, 940]], [[1040, 540], [1140, 640]]]
    viewer.key("Control+z")
    assert places(viewer) == [[[600, 500], [900, 900]], [[1000, 500], [1100, 600]]]

"""Images beside each other: tied, untied and tied again (a video and its mosaic: test_mosaics)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.viewer_page import query_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def _views(page: Any) -> list[list[float]]:
    """x, y, z, degrees of each image, of the address once it has settled."""
    return [[float(part) for part in text.split(",")] for text in query_of(page)["v"]]


def _drag(page: Any, pane: int, dx: float, dy: float) -> None:
    box = page.locator(f'[data-pane="{pane}"] [data-map]').bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + dx, y + dy, steps=4)
    page.wait_for_timeout(150)  # held still: no momentum
    page.mouse.up()


def test_two_images_move_together_and_keep_the_offset_made_while_untied(
    open_viewer: Any, ingest: Any, slide_file: Any
) -> None:
    canvas = ingest(slide_file)
    viewer = open_viewer(canvas)
    page = viewer.page
    page.click("[data-beside-link]")  # alone it asks what shall stand beside it
    page.locator(f'[data-choice="{canvas.pk}"]').click()
    page.wait_for_selector("[data-beside-panes][data-ready][data-panes='2']", timeout=30_000)
    page.goto(
        f"{viewer.base}/canvases/{canvas.pk}/beside/?with={canvas.pk}&v=1000,750,2,0&v=900,700,4,0"
    )
    page.wait_for_selector("[data-beside-panes][data-ready]")
    _drag(page, 1, 50, -20)
    first, second = _views(page)
    assert 950 > first[0] > 880
    assert second[:2] == pytest.approx(  # as far on the screen, at its own scale
        [900 + 2 * (first[0] - 1000), 700 + 2 * (first[1] - 750)], abs=1
    )
    viewer.key("t")
    _drag(page, 2, -30, 0)
    alone = _views(page)
    assert alone[0] == pytest.approx(first)
    assert alone[1][0] > second[0] + 60
    viewer.key("t")
    viewer.key("1")
    viewer.key("+")
    viewer.key("e")
    turned = _views(page)
    assert [view[2] for view in turned] == pytest.approx(
        [alone[0][2] / 2, alone[1][2] / 2], rel=0.01
    )
    assert [view[3] for view in turned] == pytest.approx([15, 15], abs=0.1)
    assert turned[1][:2] == pytest.approx(alone[1][:2], abs=1)  # the offset stays
    viewer.key("Shift+T")
    assert len({view[2] for view in _views(page)}) == 1
    page.reload()
    page.wait_for_selector("[data-beside-panes][data-ready]")
    assert page.locator("[data-beside=tie]").get_attribute("aria-pressed") == "true"
    assert viewer.problems == []

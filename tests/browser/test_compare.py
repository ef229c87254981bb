"""The compare page; a video and its mosaic are compared in test_mosaics."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.viewer_page import query_of

pytestmark = pytest.mark.browser

STILL = "() => new Promise((done) => setTimeout(done, 150))"
"""OpenLayers gives a drag no momentum that rested for 100 ms of the page's own clock."""


def _views(page: Any) -> list[list[float]]:
    """x, y, z, degrees of each image, of the address once it has settled."""
    return [[float(part) for part in text.split(",")] for text in query_of(page)["v"]]


def _drag(page: Any, pane: int, dx: float, dy: float) -> None:
    box = page.locator(f'[data-pane="{pane}"] [data-map]').bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + dx, y + dy, steps=4)
    page.evaluate(STILL)
    page.mouse.up()


def test_synchronised_images_keep_an_offset_made_while_not_synchronised(
    open_viewer: Any, ingest: Any, slide_file: Any
) -> None:
    canvas = ingest(slide_file)
    viewer = open_viewer(canvas)
    page = viewer.page
    page.click("[data-compare-link]")  # a single image opens the dialog that adds another
    page.locator(f'[data-choice="{canvas.pk}"]').click()
    page.wait_for_selector("[data-compare][data-ready][data-panes='2']", timeout=30_000)
    page.goto(
        f"{viewer.base}/canvases/{canvas.pk}/compare/?with={canvas.pk}&v=1000,750,2,0&v=900,700,4,0"
    )
    page.wait_for_selector("[data-compare][data-ready]")
    _drag(page, 1, 50, -20)
    first, second = _views(page)
    assert 950 > first[0] > 880
    assert second[:2] == pytest.approx(  # as far on the screen, at its own scale
        [900 + 2 * (first[0] - 1000), 700 + 2 * (first[1] - 750)], abs=1
    )
    viewer.key("t")
    _drag(page, 2, -30, 0)
    unlinked = _views(page)
    assert unlinked[0] == pytest.approx(first)
    assert unlinked[1][0] > second[0] + 60
    viewer.key("t")
    viewer.key("1")
    viewer.key("+")
    viewer.key("e")
    turned = _views(page)
    assert [view[2] for view in turned] == pytest.approx(
        [unlinked[0][2] / 2, unlinked[1][2] / 2], rel=0.01
    )
    assert [view[3] for view in turned] == pytest.approx([15, 15], abs=0.1)
    assert turned[1][:2] == pytest.approx(unlinked[1][:2], abs=1)  # the offset stays
    viewer.key("Shift+T")
    assert len({view[2] for view in _views(page)}) == 1
    page.reload()
    page.wait_for_selector("[data-compare][data-ready]")
    assert page.locator("[data-compare-action=sync]").get_attribute("aria-pressed") == "true"
    assert viewer.problems == []


def test_four_synchronised_images_move_and_rotate_together(
    open_viewer: Any, ingest: Any, slide_file: Any, video_file: Any
) -> None:
    slide, video = ingest(slide_file), ingest(video_file)
    viewer = open_viewer(slide)
    page = viewer.page
    views = "&v=1000,750,2,0&v=128,96,0.5,0&v=900,700,4,0&v=400,300,1,0&sync=1"
    others = f"with={video.pk}&with={slide.pk}"
    page.goto(f"{viewer.base}/canvases/{slide.pk}/compare/?{others}{views}")
    page.wait_for_selector("[data-compare][data-ready][data-panes='3']", timeout=30_000)
    page.get_by_role("button", name="Add image…").click()
    page.locator(f'[data-choice="{slide.pk}"]').click()
    page.wait_for_selector("[data-compare][data-ready][data-panes='4']", timeout=30_000)
    assert page.get_by_role("button", name="Add image…").is_disabled()
    boxes = [page.locator(f'[data-pane="{at}"]').bounding_box() for at in range(1, 5)]
    assert len({(box["x"], box["y"]) for box in boxes}) == 4
    assert [box["width"] for box in boxes] == pytest.approx([boxes[0]["width"]] * 4, abs=1)
    assert [box["height"] for box in boxes] == pytest.approx([boxes[0]["height"]] * 4, abs=1)
    _drag(page, 1, 10, 10)  # now the URL holds the view of the new image too
    before = _views(page)
    _drag(page, 4, 40, -30)
    moved = _views(page)
    on_screen = [
        ((now[0] - was[0]) / was[2], (now[1] - was[1]) / was[2])
        for was, now in zip(before, moved, strict=True)
    ]
    assert -40 <= on_screen[0][0] < -25
    for by in on_screen:  # as far on the screen, each at its own scale
        assert by == pytest.approx(on_screen[3], abs=0.5)
    page.locator('[data-pane="2"] [data-map]').focus()
    viewer.key("e")
    viewer.key("+")
    turned = _views(page)
    assert [view[3] for view in turned] == pytest.approx([15] * 4, abs=0.1)
    assert [view[2] for view in turned] == pytest.approx([view[2] / 2 for view in moved], rel=0.01)
    viewer.key("f")  # steps the video whichever pane is active
    expect(page.locator('[data-pane="2"] [data-frame-index]')).to_have_text("Frame 2 / 40")
    page.get_by_role("button", name="Remove image 3").click()
    page.wait_for_selector("[data-compare][data-ready][data-panes='3']", timeout=30_000)
    assert [view[3] for view in _views(page)] == pytest.approx([15] * 3, abs=0.1)
    page.go_back()
    page.wait_for_selector("[data-compare][data-ready][data-panes='4']", timeout=30_000)
    page.locator('[data-pane="1"] [data-pane-name]').click()
    page.wait_for_selector("[data-viewer][data-ready]", timeout=30_000)
    link = viewer.link()
    assert [float(link[name]) for name in ("x", "y", "z")] == pytest.approx(turned[0][:3], rel=0.01)
    assert viewer.problems == []

"""Similar cases as a doctor goes through them, on real sections and with the shipped encoder.

D1, D2 and E1 are sections of one block of HER2ST's patient C (``TESSERA_DATA``). Squares were drawn
on D2, one of them at the place that is drawn on D1 now, and on E1.
How often such a place comes first is for ``tests/portal/explore/test_adjacent_sections.py``: here
it is one place.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect
from pypdf import PdfReader

from ml.imaging.slides.slide import open_slide
from portal.annotations.services.rois import roi_create
from tests.browser.conftest import run_queued
from tests.browser.similar.test_explanation import painted
from tests.browser.viewer_page import query_of
from tests.sections import laid_onto

pytestmark = [pytest.mark.browser, pytest.mark.endurance]

SIDE, COUNT = 1024, 8
NAMES = {name: f"5714_HE_BT_{name}" for name in ("D1", "D2", "E1")}


def squares(path: Path) -> Any:
    """(N, 2): middles of squares of tissue, in pixels."""
    from ml.roi.stain.squares import tissue_squares

    with open_slide(path) as slide:
        boxes = tissue_squares(slide, SIDE, max_count=400)
    return (boxes[:, :2] + boxes[:, 2:]) / 2


def corners(middle: Any) -> list[tuple[float, float]]:
    """Corners of a square, in order."""
    (x, y), half = np.round(np.asarray(middle, float), 1).tolist(), SIDE / 2
    return [(x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half)]


def spread(count: int) -> list[int]:
    """``COUNT`` of so many, from the first to the last."""
    return np.linspace(0, count - 1, COUNT).round().astype(int).tolist()


def views_of(page: Any) -> list[list[float]]:
    """x, y, scale, turn of each compared image, from the URL."""
    return [[float(part) for part in text.split(",")] for text in query_of(page)["v"]]


@pytest.fixture
def sections(
    ingest: Callable[[Path], Any], annotator: Any, tessera_data: Path
) -> tuple[Any, Any, Any]:
    """The canvas of D1, a place of it, and the ROI at the same place of D2."""
    paths = {
        name: tessera_data / "histology" / "sections" / f"{file}.jpg"
        for name, file in NAMES.items()
    }
    canvases = {name: ingest(path) for name, path in paths.items()}

    def draw(name: str, middle: Any) -> Any:
        ring = [list(corner) for corner in corners(middle)]
        geometry = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
        return roi_create(canvas=canvases[name], user=annotator, geometry=geometry).roi

    turn = laid_onto(paths["D1"], paths["D2"])
    here = squares(paths["D1"])
    there = np.c_[here, np.ones(len(here))] @ turn.T
    size = np.array([canvases["D2"].width_px, canvases["D2"].height_px])
    inside = ((there > SIDE / 2) & (there < size - SIDE / 2)).all(axis=1)
    here, there = here[inside], there[inside]
    chosen = spread(len(here))
    drawn = [draw("D2", there[at]) for at in chosen]
    others = squares(paths["E1"])
    for at in spread(len(others)):
        draw("E1", others[at])
    run_queued()
    middle = COUNT // 2
    return canvases["D1"], here[chosen[middle]], drawn[middle]


def test_a_region_is_drawn_searched_marked_compared_explained_and_printed(
    open_viewer: Any, sections: tuple[Any, Any, Any]
) -> None:
    canvas, place, same = sections
    viewer = open_viewer(canvas, f"x={place[0]:.0f}&y={place[1]:.0f}&z=3")
    page = viewer.page
    viewer.key("r")
    viewer.drag([corners(place)[0], place, corners(place)[2]])
    viewer.wait_saved()
    (drawn,) = viewer.stored()
    assert drawn.right - drawn.left == pytest.approx(SIDE, abs=10)

    page.locator("[data-roi-similar]").click()
    expect(page.get_by_role("heading", name="Preparing this region")).to_be_visible()
    run_queued()
    hits = page.locator("[data-hits] > li")
    expect(hits).to_have_count(2)  # one a case
    first = hits.first.locator(".card__link")
    expect(first).to_have_id(f"hit-{same.pk}")
    expect(first).to_contain_text(NAMES["D2"])

    page.get_by_label("Every region of a case").check()
    expect(hits).to_have_count(2 * COUNT)
    expect(first).to_have_id(f"hit-{same.pk}")
    unlike = page.locator("[data-hits] > li", has_text=NAMES["E1"]).first.locator(".card__link")
    other = unlike.get_attribute("id")
    before = [link.get_attribute("id") for link in hits.locator(".card__link").all()]
    unlike.focus()
    viewer.key("u")
    expect(page.locator(f"#{other}")).to_have_count(0)
    expect(page.get_by_text("1 region marked as not alike, left out")).to_be_visible()
    expect(hits.nth(before.index(other)).locator(".card__link")).to_be_focused()  # at its place
    first.focus()
    viewer.key("j")
    expect(hits.nth(1).locator(".card__link")).to_be_focused()
    viewer.key("k")
    expect(first).to_be_focused()
    viewer.key("l")
    expect(page.get_by_text("ordered by this region and your 2 marks")).to_be_visible()
    expect(hits).to_have_count(2 * COUNT - 1)
    expect(first).to_have_id(f"hit-{same.pk}")
    after = [link.get_attribute("id") for link in hits.locator(".card__link").all()]
    assert set(after) == set(before) - {other}

    address = page.url
    first.focus()
    viewer.key("w")
    expect(page.get_by_role("heading", name="Comparing both regions")).to_be_visible()
    run_queued()
    expect(page.locator(".explanation__pair")).not_to_have_count(0)
    painted(page)
    page.go_back()
    expect(first).to_be_focused()
    assert page.url == address

    hits.first.get_by_role("link", name="Compare with the query").click()
    page.wait_for_selector("[data-compare][data-ready][data-panes='2']", timeout=30_000)
    views = views_of(page)
    assert views[0][:2] == pytest.approx([(drawn.left + drawn.right) / 2, place[1]], abs=20)
    assert views[1][:2] == pytest.approx([same.centroid_x, same.centroid_y], abs=20)
    assert views[0][2] == pytest.approx(views[1][2])  # at one magnification
    page.locator('[data-pane="1"] [data-map]').focus()
    viewer.key("+")
    closer = views_of(page)
    assert [patch[2] for patch in closer] == pytest.approx(
        [view[2] / 2 for view in views], rel=0.01
    )
    page.wait_for_load_state("networkidle")
    page.goto(address)

    page.get_by_role("button", name="Report").click()
    run_queued()  # pictures that the page has not shown
    page.wait_for_url("**/reports/**")
    expect(page.get_by_text("1 alike, 1 not alike")).to_be_visible()
    expect(page.locator(".card-grid > li")).to_have_count(2 * COUNT - 1)
    with page.expect_download() as download:
        page.get_by_role("link", name="PDF").click()
    printed = Path(download.value.path()).read_bytes()
    text = "\n".join(sheet.extract_text() for sheet in PdfReader(io.BytesIO(printed)).pages)
    assert text.index(NAMES["D2"]) < text.index(NAMES["E1"])
    assert "1 alike, 1 not alike" in text
    page.get_by_role("link", name="Run again").click()
    expect(page.locator(".facts--across")).to_contain_text(str(2 * COUNT - 1))
    assert viewer.problems == []

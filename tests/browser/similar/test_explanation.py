"""Explanations of matches that are no ROIs: a frame, an uploaded picture, a slide."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import expect

from ml.imaging.slides.slide import open_slide
from portal.annotations.services.rois import roi_create
from portal.archive.models import Video
from portal.archive.selectors.frames import frame_table
from tests.browser.conftest import run_queued
from tests.browser.viewer_page import settle

pytestmark = pytest.mark.browser

BOXES = ((100, 100), (700, 300), (1300, 800))
"""Left and top of squares with blots in them."""
SIDE = 640  # some patches each


def copy_of(path: Path, more: bytes) -> Path:
    """The same file but for bytes at its end that no reader looks at."""
    made = path.with_name(f"other-{path.name}")
    made.write_bytes(path.read_bytes() + more)
    return made


def box(left: float, top: float, right: float, bottom: float) -> dict[str, Any]:
    """GeoJSON."""
    ring = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
    return {"type": "Polygon", "coordinates": [ring]}


@pytest.fixture
def slides(ingest: Any, slide_file: Path, annotator: Any) -> tuple[Any, Any]:
    """Two patients' slides: on the second are ROIs, which a search with the first finds."""
    canvas, other = ingest(slide_file), ingest(copy_of(slide_file, b"\0"))
    for left, top in BOXES:
        geometry = box(left, top, left + SIDE, top + SIDE)
        roi_create(canvas=other, user=annotator, geometry=geometry)
    run_queued()
    return canvas, other


def explained(page: Any) -> Any:
    """From an answer that is being prepared to why its first hit was found."""
    run_queued()
    link = page.locator("[data-hits] > li").first.locator("[data-explanation]")
    link.click(timeout=30_000)
    expect(page.get_by_role("heading", name="Comparing both regions")).to_be_visible()
    run_queued()
    picture = page.locator(".explanation__picture")
    expect(picture).to_be_visible(timeout=30_000)
    painted(page)
    return picture


LOADED = """(pictures) => Promise.all(pictures.map((one) => {
  const copy = new Image();
  copy.src = one.getAttribute("href");
  return copy.decode().then(() => copy.naturalWidth);
}))"""


def painted(page: Any) -> None:
    """Until both regions are there to be seen; a picture that is none fails."""
    assert page.locator(".explanation__picture > image").evaluate_all(LOADED) == [960, 960]
    settle(page)


def test_a_match_of_frames_is_explained_by_key_points(
    open_viewer: Any, ingest: Any, sweep_file: Path, annotator: Any
) -> None:
    canvas = ingest(sweep_file)
    other = ingest(copy_of(sweep_file, b"\0\0\0\x08free"))
    pts = int(frame_table(Video.objects.get(canvas=other)).pts[1])
    geometry = box(40, 30, 216, 162)
    roi_create(canvas=other, user=annotator, geometry=geometry, frame_pts=pts)
    run_queued()
    viewer = open_viewer(canvas)
    page = viewer.page
    viewer.wait_exact()
    page.get_by_text("Similar", exact=True).click()
    page.get_by_role("button", name="To this frame").click()
    page.wait_for_url("**/queries/*/")
    explained(page)
    expect(page.locator("#explanation")).to_contain_text(
        "lie in the same way relative to each other"
    )
    assert page.locator(".explanation__pair").count() > 5
    assert viewer.problems == []


_NUMBERS_ARE_ABOVE_LINES = """() => {
  const line = [...document.querySelectorAll(".explanation__lines line")].pop();
  const number = document.querySelector(".explanation__badge");
  return line.compareDocumentPosition(number) === Node.DOCUMENT_POSITION_FOLLOWING;
}"""


def test_matches_of_a_picture_and_of_tissue_are_explained_but_none_of_a_mean(
    open_viewer: Any, slides: Any, slide_file: Path
) -> None:
    with open_slide(slide_file) as slide:
        pixels = slide.read_region(BOXES[0], (SIDE, SIDE), (SIDE, SIDE))
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=92)
    viewer = open_viewer(slides[0])
    page = viewer.page
    page.goto(f"{viewer.base}/queries/picture/")
    file = {"name": "field.jpg", "mimeType": "image/jpeg", "buffer": stream.getvalue()}
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_label("Microns per pixel").fill("0.5")
    page.get_by_role("button", name="Search", exact=True).click()
    page.wait_for_url("**/queries/*/")
    explained(page)
    assert page.locator(".explanation__pair").count() > 2
    assert page.evaluate(_NUMBERS_ARE_ABOVE_LINES)
    expect(page.locator("#explanation-stain")).to_be_visible()
    viewer.open()
    page.get_by_text("Similar", exact=True).click()
    page.get_by_role("button", name="To the tissue of this slide").click()
    page.wait_for_url("**/queries/*/")
    explained(page)
    assert page.locator(".explanation__pair").count() > 2
    viewer.canvas = slides[1]
    viewer.open()
    page.get_by_text("Similar", exact=True).click()
    page.get_by_role("button", name="To the regions of this slide").click()
    page.wait_for_url("**/queries/*/")
    expect(page.get_by_text("No similar region found")).to_be_visible()
    assert viewer.problems == []

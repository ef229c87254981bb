"""The picture of the view is what is on screen."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from portal.annotations.services.rois import roi_create
from tests.browser.viewer_page import settle

pytestmark = pytest.mark.browser

HIDE = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(".stage-overview, .stage-top, .stage-notice,"
    + ".ol-overlaycontainer-stopevent, .ol-overlaycontainer { visibility: hidden !important }"
    + ".scale-bar { border-radius: 0 !important }");
  document.adoptedStyleSheets.push(sheet);
}"""


def screen(viewer: Any) -> np.ndarray:
    settle(viewer.page)
    box = viewer.page.locator("[data-map]").bounding_box()
    return pixels(viewer.page.screenshot(clip=box))


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), np.int16)


def saved(viewer: Any) -> tuple[str, np.ndarray]:
    """Name and pixels of the picture that the menu saves."""
    viewer.page.locator("[data-export-menu] summary").click()
    with viewer.page.expect_download() as download:
        viewer.page.locator("[data-export-view]").click()
    return download.value.suggested_filename, pixels(Path(download.value.path()).read_bytes())


def test_the_picture_of_the_view_has_its_rotation_names_colours_and_visibility(
    open_viewer: Any, ingest: Any, slide_file: Path, annotator: Any
) -> None:
    canvas = ingest(slide_file)
    ring = [[800, 600], [1200, 600], [1200, 900], [800, 900], [800, 600]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    roi_create(canvas=canvas, user=annotator, geometry=geometry, name="Gland")
    viewer = open_viewer(canvas).centred()
    viewer.page.evaluate(HIDE)
    plain = screen(viewer)
    for key in ("e", "e", "n", "Shift+F", "Shift+C"):
        viewer.key(key)
    viewer.page.select_option("[data-adjustments-channel]", "green")
    viewer.key("Escape")
    for change in (None, "a"):
        if change:
            viewer.key(change)
        shown = screen(viewer)
        assert np.abs(shown - plain).mean() > 10
        name, picture = saved(viewer)
        assert name == "blots.png"
        height, width = np.minimum(picture.shape, shown.shape)[:2]  # the window has half pixels
        assert abs(picture.shape[0] - shown.shape[0]) + abs(picture.shape[1] - shown.shape[1]) <= 2
        off = np.abs(picture[:height, :width] - shown[:height, :width]).max(-1)
        assert (off <= 8).mean() > 0.98
    assert viewer.problems == []

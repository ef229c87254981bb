"""Find similar here, by its keys: forward and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from portal.annotations.services.rois import roi_create
from portal.embeddings.models import Encoder
from portal.embeddings.services.embeddings import embedding_save
from portal.explore.selectors.similar_regions import SampleKey
from portal.explore.services.similar_regions import SamplePart, sample_add, side_of

pytestmark = pytest.mark.browser

PLACES = [(1500, 300), (300, 1100), (1600, 1200)]
"""Left and top of squares, the most similar first."""


@pytest.fixture
def canvas(ingest: Any, slide_file: Any, annotator: Any) -> Any:
    """A slide that was looked through, with one ROI."""
    canvas = ingest(slide_file)
    ring = [[600, 400], [728, 400], [728, 528], [600, 528], [600, 400]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    roi = roi_create(canvas=canvas, user=annotator, geometry=geometry, name="Gland").roi
    fields = {"name": "two", "version": "1", "config_hash": "1" * 64, "dim": 2}
    encoder = Encoder.objects.create(**fields, is_default=True)
    embedding_save(
        roi_id=roi.pk,
        geometry=roi.geometry,
        encoder=encoder,
        vector=np.zeros(2, np.float32),
        patch_count=1,
        seconds=0.1,
    )
    side = side_of(roi)
    corners = np.array(PLACES, np.float64)
    part = SamplePart(
        boxes=np.concatenate([corners, corners + side], axis=1),
        vectors=np.array([[1, 0], [2, 0], [3, 0]], np.float32),
        tried=len(PLACES),
        total=len(PLACES),
        seconds=0.1,
        is_last=True,
    )
    sample_add(SampleKey(canvas, encoder, side, annotator.pk), part)
    return canvas


def middle(viewer: Any) -> tuple[float, float]:
    link = viewer.link()
    return float(link["x"]), float(link["y"])


def centre_of(place: int) -> tuple[float, float]:
    return PLACES[place][0] + 64, PLACES[place][1] + 64


def test_similar_places_skip_existing_regions_and_can_be_stepped_back(
    open_viewer: Any, canvas: Any
) -> None:
    viewer = open_viewer(canvas).centred()
    bar, notice = viewer.page.locator("[data-similar-bar]"), viewer.page.locator(".stage-notice")
    viewer.key("Shift+N")
    expect(notice).to_contain_text("Select one region first")
    start = middle(viewer)
    (at,) = viewer.places([(664, 464)])
    viewer.page.mouse.click(*at)
    viewer.key("Shift+N")
    expect(bar).to_contain_text("Similar to Gland: place 1")
    assert middle(viewer) == pytest.approx(centre_of(0), abs=1)
    assert float(viewer.link()["z"]) == 2.0  # at the same magnification
    bar.get_by_role("button", name="Next").click()
    expect(bar).to_contain_text("place 2")
    assert middle(viewer) == pytest.approx(centre_of(1), abs=1)
    viewer.key("r")
    viewer.drag([(320, 1120), (420, 1220)])  # drawn here, and the next one is as before
    viewer.wait_saved()
    viewer.key("m")
    viewer.key("Shift+N")
    expect(bar).to_contain_text("place 3")
    assert middle(viewer) == pytest.approx(centre_of(2), abs=1)
    viewer.key("Shift+N")
    expect(notice).to_contain_text("No more places")
    boxes = [part.bounding_box() for part in (notice, bar)]
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"], "the bar leaves the notice in sight"
    scale = viewer.page.locator(".scale-bar").bounding_box()
    assert scale["y"] + scale["height"] <= boxes[1]["y"], "and the scale bar"
    for place in (1, 0):
        viewer.key("Shift+B")
        assert middle(viewer) == pytest.approx(centre_of(place), abs=1)
    viewer.key("Shift+B")
    expect(bar).to_be_hidden()
    assert middle(viewer) == pytest.approx(start, abs=1)
    expect(viewer.page.locator("[data-roi-name]")).to_have_value("Gland")
    viewer.key("Shift+N")
    expect(bar).to_contain_text("place 1")
    viewer.key("Escape")
    expect(bar).to_be_hidden()
    assert viewer.problems == []


def test_the_actions_of_a_region_fit_in_one_row(open_viewer: Any, canvas: Any) -> None:
    viewer = open_viewer(canvas).centred()
    (at,) = viewer.places([(664, 464)])
    viewer.page.mouse.click(*at)
    actions = viewer.page.locator(".details-actions > *")
    expect(actions).to_have_count(4)
    assert len({action.bounding_box()["y"] for action in actions.all()}) == 1
    viewer.page.set_viewport_size({"width": 400, "height": 700})
    viewer.key("Shift+C")
    box = viewer.page.locator("[data-adjustments-panel]").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 400
    assert viewer.page.evaluate("document.documentElement.scrollWidth") == 400
    assert viewer.problems == []

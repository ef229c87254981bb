"""A mosaic in a real browser: frames at a point, its layers, its video's playhead, a span."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import cv2
import numpy as np
import pytest
from playwright.sync_api import expect

from portal.annotations.services.rois import roi_create
from portal.archive.storage import files as archive_storage
from portal.mosaics.models import MosaicComponent, MosaicFrame
from portal.mosaics.services.mosaics import mosaic_create
from tests.browser.conftest import run_job, run_queued

pytestmark = pytest.mark.browser


@pytest.fixture
def mosaic(ingest: Callable[..., Any], annotator: Any, sweep_file: Path) -> Any:
    """The sweep's mosaic, built, with a layer."""
    submitted = mosaic_create(video=ingest(sweep_file).video, user=annotator)
    run_job(submitted.job)
    submitted.mosaic.refresh_from_db()
    grey = np.tile(np.arange(1, 51, dtype=np.uint8) * 5, (30, 1))
    folder = archive_storage.derived_folder(submitted.mosaic.pk)
    cv2.imwrite(str(folder / "layer-time.png"), grey)
    MosaicComponent.objects.update(
        layers=[
            {
                "name": "time",
                "png": "layer-time.png",
                "unit": "s",
                "minimum": 0.0,
                "maximum": 0.44,
                "downsample": submitted.mosaic.canvas.width_px / 50,
            }
        ]
    )
    return submitted.mosaic


def test_a_click_on_a_mosaic_lists_its_frames_and_opens_the_video(
    open_viewer: Any, mosaic: Any
) -> None:
    viewer = open_viewer(mosaic.canvas)
    viewer.key("Shift+W")
    place = viewer.places([(mosaic.canvas.width_px / 2, mosaic.canvas.height_px / 2)])[0]
    viewer.page.mouse.click(*place)
    rows = viewer.page.locator(".frame-at-point")
    expect(rows.first).to_be_visible()
    with viewer.database:
        placed = MosaicFrame.objects.filter(mosaic=mosaic, status="registered").count()
    assert 1 < rows.count() <= placed
    rows.first.locator(".frame-at-point-choose").click()
    viewer.wait_text(
        "[data-strip] [data-frame-index]",
        rows.first.locator(".frame-at-point-facts").first.inner_text().split(" · ")[0],
    )
    rows.first.get_by_role("link", name="Video").click()
    viewer.page.wait_for_selector("[data-viewer][data-kind=video][data-ready]", timeout=30_000)
    assert "t=" in viewer.page.url
    assert viewer.problems == []


def test_a_click_on_a_mosaic_compared_with_its_video_seeks_the_best_frame(
    open_viewer: Any, mosaic: Any
) -> None:
    viewer = open_viewer(mosaic.canvas)
    page = viewer.page
    page.get_by_role("link", name="Compare with the video").click()
    page.wait_for_selector("[data-compare][data-ready][data-panes='2']", timeout=30_000)
    assert page.locator("[data-compare-action=sync]").get_attribute("aria-pressed") == "false"
    frame = page.locator('[data-pane="1"] [data-frame-index]')
    expect(frame).to_have_text("Frame 1 / 12")
    box = page.locator('[data-pane="2"] [data-map]').bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(frame).not_to_have_text("Frame 1 / 12")
    assert viewer.problems == []


def test_a_layer_is_shown_with_its_legend(open_viewer: Any, mosaic: Any) -> None:
    viewer = open_viewer(mosaic.canvas)
    viewer.key("t")
    expect(viewer.page.locator("[data-layer-settings]")).to_be_visible()
    viewer.wait_text("[data-layer-minimum]", "00:00.000")
    viewer.wait_text("[data-layer-maximum]", "00:00.440")
    place = viewer.places([(mosaic.canvas.width_px * 0.9, mosaic.canvas.height_px / 2)])[0]
    viewer.page.mouse.move(*place)
    viewer.wait_text("[data-layer-value]", re.compile(r"00:00\.[34]"))
    viewer.key("t")
    expect(viewer.page.locator("[data-layer-settings]")).to_be_hidden()
    assert viewer.problems == []


def test_the_small_map_follows_the_frame_of_the_video(open_viewer: Any, mosaic: Any) -> None:
    viewer = open_viewer(mosaic.video.canvas)
    line = viewer.page.locator(".mini-map__line")
    expect(viewer.page.locator("[data-mini-map]")).to_be_visible()
    before = line.get_attribute("points")
    assert before
    frame, small = (
        viewer.page.locator(selector).bounding_box()
        for selector in ("[data-map]", "[data-mini-map]")
    )
    assert small["x"] >= frame["x"] + frame["width"]  # covers nothing of the frame
    viewer.key("g")
    expect(viewer.page.locator("[data-mini-map]")).to_be_hidden()
    expect(viewer.page.get_by_role("tab", name="Regions")).to_be_visible()
    viewer.key("g")
    expect(viewer.page.locator("[data-mini-map]")).to_be_visible()
    for _ in range(4):
        viewer.key("f")
        viewer.wait_exact()
    viewer.wait_text("[data-timeline] [data-frame-index]", "Frame 5 / 12")
    assert line.get_attribute("points") != before
    expect(viewer.page.locator("[data-mini-note]")).to_contain_text("in the mosaic")
    viewer.page.locator("[data-mini-open]").click()
    viewer.page.wait_for_selector("[data-viewer][data-kind=mosaic][data-ready]", timeout=30_000)
    viewer.wait_text("[data-strip] [data-frame-index]", "Frame 5")
    assert viewer.problems == []


def test_a_span_is_set_on_the_timeline_estimated_and_built(open_viewer: Any, mosaic: Any) -> None:
    viewer = open_viewer(mosaic.video.canvas)
    for key in ("f", "f", "Shift+I", "f", "f", "f", "Shift+O"):
        viewer.key(key)
        viewer.wait_exact()
    viewer.wait_text("[data-span-text]", "0.08 s to 0.20 s")
    bar = viewer.page.locator("[data-span-bar]").bounding_box()
    controls = viewer.page.locator(".timeline-buttons").bounding_box()
    assert bar["y"] + bar["height"] <= controls["y"], "it covers the controls"
    scale = viewer.page.locator(".scale-bar").bounding_box()
    assert scale["y"] + scale["height"] <= bar["y"], "it covers the scale bar"
    expect(viewer.page.locator("[data-span-estimate]")).to_contain_text("4 frames, about")
    link = viewer.page.get_by_role("link", name="Mosaic", exact=True)
    assert parse_qs(urlsplit(link.get_attribute("href")).query) == {
        "start_s": ["0.08"],
        "end_s": ["0.2"],
    }
    viewer.page.locator("[data-span-build]").click()
    viewer.page.wait_for_url("**/mosaics/**")
    expect(viewer.page.locator("h2").first).to_contain_text("Being built: 0.08 s to 0.2 s")
    run_queued()
    expect(viewer.page.get_by_role("link", name="More seconds")).to_be_visible(timeout=30_000)
    assert viewer.problems == []


def test_rois_are_projected_between_the_mosaic_and_its_frames(
    open_viewer: Any, mosaic: Any, annotator: Any
) -> None:
    def square(left: float, top: float, side: float) -> dict[str, Any]:
        right, low = left + side, top + side
        ring = [[left, top], [right, top], [right, low], [left, low], [left, top]]
        return {"type": "Polygon", "coordinates": [ring]}

    x, y = mosaic.canvas.width_px / 2, mosaic.canvas.height_px / 2
    roi_create(canvas=mosaic.canvas, user=annotator, geometry=square(x - 20, y - 20, 40), name="A")
    roi_create(
        canvas=mosaic.video.canvas,
        user=annotator,
        geometry=square(20, 20, 50),
        name="B",
        frame_index=0,
    )
    viewer = open_viewer(mosaic.canvas)
    expect(viewer.page.locator("[data-roi-projected]")).to_contain_text("1 region is projected")
    viewer.page.locator(".roi-row").click()
    viewer.page.locator("[data-roi-frames]").click()
    expect(viewer.page.locator("[data-frames-note]")).to_contain_text("see A")
    expect(viewer.page.locator(".frame-at-point").first).to_contain_text("100 % of it")
    viewer.page.locator(".frame-at-point").first.get_by_role("link", name="Video").click()
    viewer.page.wait_for_selector("[data-viewer][data-kind=video][data-ready]", timeout=30_000)
    viewer.page.wait_for_load_state("networkidle")  # the frame and what is projected into it
    box = viewer.page.locator("[data-map]").bounding_box()
    viewer.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(viewer.page.locator("[data-stage-notice]")).to_contain_text(
        "A: projected from the mosaic"
    )
    assert viewer.problems == []

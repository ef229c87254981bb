"""Outline this, where no slide is shown: on a frame of a video, and on its mosaic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from playwright.sync_api import expect
from shapely.affinity import affine_transform, scale
from shapely.geometry import Point, Polygon, shape

from portal.mosaics.models import MosaicFrame
from portal.mosaics.services.mosaics import mosaic_create
from tests.browser.conftest import run_job

pytestmark = pytest.mark.browser

FRAME, COUNT, STEP_PX = (256, 192), 12, 12
LESION = (190.0, 96.0, 42.0, 30.0)
"""Middle and half axes of what is outlined, in pixels of the first frame."""
AT = 6  # the frame that is drawn on


@pytest.fixture(scope="module")
def lesion_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scope that moves to the right over mucosa with a dark lesion."""
    rng = np.random.default_rng(3)
    width, height = FRAME
    scene = np.full((height, width + STEP_PX * COUNT, 3), (214, 150, 140), np.uint8)
    for _ in range(600):
        centre = (int(rng.integers(scene.shape[1])), int(rng.integers(height)))
        colour = [int(v) for v in np.array([214, 150, 140]) + rng.integers(-35, 35, 3)]
        cv2.circle(scene, centre, int(rng.integers(2, 7)), colour, -1)
    x, y, half_x, half_y = (round(v) for v in LESION)
    cv2.ellipse(scene, (x, y), (half_x, half_y), 0, 0, 360, (84, 40, 52), -1)
    path = tmp_path_factory.mktemp("videos") / "lesion.mp4"
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=25, options={"crf": "12"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for i in range(COUNT):
            view = np.ascontiguousarray(scene[:, STEP_PX * i : STEP_PX * i + width])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(view, format="rgb24")))
        container.mux(stream.encode(None))
    return path


def lesion(left: float = 0.0) -> Polygon:
    """Its outline in a frame whose left edge is there."""
    x, y, half_x, half_y = LESION
    return scale(Point(x - left, y).buffer(1, quad_segs=32), half_x, half_y)


def propose_and_accept(viewer: Any, at: tuple[float, float]) -> Any:
    """Shift+H, a click, Enter: what is stored then; what was proposed is compared with it."""
    proposed: list[Any] = []
    viewer.page.on(
        "response",
        lambda answer: proposed.append(answer.json()) if "/outline/" in answer.url else None,
    )
    bar = viewer.page.locator("[data-suggestion]")
    viewer.key("Shift+H")
    viewer.page.mouse.click(*viewer.places([at])[0])
    expect(bar).to_have_attribute("data-state", "shown")
    assert viewer.stored() == []  # dashed, and nobody's yet
    shown = int(bar.locator("input").input_value())
    viewer.key("Enter")
    expect(bar).to_be_hidden()
    viewer.wait_count(1)
    viewer.wait_saved()
    (roi,) = viewer.stored()
    (answer,) = proposed
    ring = shape(answer["geometries"][shown])
    assert shape(roi.geometry).symmetric_difference(ring).area < 1  # to the pixel
    assert viewer.problems == []
    return roi


def overlap(a: Polygon, b: Polygon) -> float:
    return float(a.intersection(b).area / a.union(b).area)


def test_an_outline_proposed_on_a_frame_belongs_to_that_frame(
    open_viewer: Any, ingest: Any, lesion_file: Path
) -> None:
    viewer = open_viewer(ingest(lesion_file))
    for _ in range(AT):
        viewer.key("f")
        viewer.wait_exact()
    viewer.wait_text("[data-timeline] [data-frame-index]", f"Frame {AT + 1} / {COUNT}")
    truth = lesion(AT * STEP_PX)
    roi = propose_and_accept(viewer, (truth.centroid.x, truth.centroid.y))
    assert (roi.frame_index, roi.frame_pts is not None) == (AT, True)
    assert overlap(shape(roi.geometry), truth) > 0.85
    viewer.key("f")
    viewer.wait_exact()
    assert viewer.page.locator("[data-suggestion]").is_hidden()


def test_an_outline_proposed_on_a_mosaic_is_inside_it(
    open_viewer: Any, ingest: Any, annotator: Any, lesion_file: Path
) -> None:
    submitted = mosaic_create(video=ingest(lesion_file).video, user=annotator)
    run_job(submitted.job)
    submitted.mosaic.refresh_from_db()
    frame = MosaicFrame.objects.filter(mosaic=submitted.mosaic, index=0).get()
    # Row major; hardly a perspective, for the scope slides.
    a, b, x, c, d, y = np.ravel(frame.H_mosaic_from_frame)[:6]
    truth = affine_transform(lesion(), [a, b, c, d, x, y])
    viewer = open_viewer(submitted.mosaic.canvas)
    roi = propose_and_accept(viewer, (truth.centroid.x, truth.centroid.y))
    assert roi.frame_index is None
    assert overlap(shape(roi.geometry), truth) > 0.85

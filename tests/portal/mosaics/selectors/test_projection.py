"""ROIs between a mosaic and its frames: by hand, cut to the view, there and back."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pytest
import shapely
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from ml.geometry import FrameMaps
from portal.annotations.models import Roi
from portal.labs.models import User
from portal.mosaics.models import Mosaic, MosaicFrame
from portal.mosaics.selectors.projection import frames_of_roi, projected_geometry, rois_in_frame

VIEW = shapely.box(0, 0, 99, 79)


def ring_of(geometry: dict[str, Any]) -> set[tuple[float, float]]:
    return {tuple(point) for point in geometry["coordinates"][0]}


def by(H: np.ndarray) -> Any:
    """Moves points by a homography."""
    return FrameMaps(np.linalg.inv(H)[None], None, (100, 80)).to_frame


def square(left: float, top: float, side: float) -> dict[str, Any]:
    right, low = left + side, top + side
    ring = [[left, top], [right, top], [right, low], [left, low], [left, top]]
    return {"type": "Polygon", "coordinates": [ring]}


def draw(canvas_id: uuid.UUID, lab_id: uuid.UUID, left: float, top: float, **more: Any) -> Roi:
    """A square of 20 px."""
    fields = {"left": left, "top": top, "right": left + 20, "bottom": top + 20, "area_px": 400}
    middle = {"centroid_x": left + 10, "centroid_y": top + 10}
    return Roi.objects.create(
        canvas_id=canvas_id,
        lab_id=lab_id,
        geometry=square(left, top, 20),
        **(fields | middle | more),
    )


def on_mosaic(mosaic: Mosaic, left: float = 60, top: float = 30) -> Roi:
    assert mosaic.canvas_id is not None
    return draw(mosaic.canvas_id, mosaic.lab_id, left, top)


def on_frame(mosaic: Mosaic, index: int, left: float = 10, top: float = 30) -> Roi:
    assert mosaic.video.canvas_id is not None
    at = {"frame_index": index, "frame_pts": 40 * index}
    return draw(mosaic.video.canvas_id, mosaic.lab_id, left, top, **at)


def url(mosaic: Mosaic, tail: str) -> str:
    return f"/api/v1/mosaics/{mosaic.pk}/{tail}/"


def test_an_roi_of_a_frame_appears_on_the_mosaic(api: APIClient, built: Mosaic) -> None:
    """Frame 2 is 20 px to the right; frame 3 was skipped, so its ROI has no position."""
    roi = on_frame(built, 2)
    on_frame(built, 3)
    body = api.get(url(built, "projected-rois")).json()
    assert body["count"] == 1
    row = body["results"][0]
    assert ring_of(row["geometry"]) == {(30, 30), (50, 30), (50, 50), (30, 50)}
    assert (row["roi"], row["frame_index"], row["share"]) == (str(roi.pk), 2, 1.0)
    assert row["drawn_on"] == str(built.video.canvas_id)


def test_an_roi_of_the_mosaic_appears_in_a_frame_cut_to_its_view(
    api: APIClient, built: Mosaic
) -> None:
    """In frame 7 it begins 10 px left of the edge: half of it is seen."""
    on_mosaic(built)
    projected = api.get(url(built, "projected-rois"), {"pts": 80}).json()["results"][0]
    assert ring_of(projected["geometry"]) == {(40, 30), (60, 30), (60, 50), (40, 50)}
    half = api.get(url(built, "projected-rois"), {"pts": 280}).json()["results"][0]
    assert half["share"] == pytest.approx(0.5)
    assert ring_of(half["geometry"]) == {(0, 30), (10, 30), (10, 50), (0, 50)}
    assert api.get(url(built, "projected-rois"), {"pts": 120}).json()["count"] == 0  # skipped
    missing = api.get(url(built, "projected-rois"), {"pts": 121})
    assert (missing.status_code, missing.json()["code"]) == (404, "frame-not-found")


def test_deleted_rois_are_not_projected(api: APIClient, built: Mosaic) -> None:
    roi = on_mosaic(built)
    Roi.objects.update(deleted_at=roi.created_at)
    assert api.get(url(built, "projected-rois"), {"pts": 80}).json()["count"] == 0


def test_the_frames_of_an_roi_come_sharpest_first_those_that_see_all_before(
    api: APIClient, built: Mosaic
) -> None:
    roi = on_mosaic(built)
    body = api.get(url(built, "roi-frames"), {"roi": str(roi.pk)}).json()
    assert [row["index"] for row in body["results"]] == [6, 4, 2, 1, 0, 7]
    assert body["results"][1]["xy_frame"] == [30, 40]
    assert [row["share"] for row in body["results"]] == [1, 1, 1, 1, 1, 0.5]
    assert "image_url" in body["results"][0]
    other_frame = on_frame(built, 2)
    answer = api.get(url(built, "roi-frames"), {"roi": str(other_frame.pk)})
    assert (answer.status_code, answer.json()["code"]) == (404, "roi-elsewhere")
    assert api.get(url(built, "roi-frames")).status_code == 400


def test_another_labs_roi_is_not_found(
    api: APIClient, built: Mosaic, foreign_built: Mosaic, stranger: User
) -> None:
    foreign = on_mosaic(foreign_built)
    assert api.get(url(built, "roi-frames"), {"roi": str(foreign.pk)}).status_code == 404


def test_queries_do_not_grow_with_rois(api: APIClient, built: Mosaic) -> None:
    roi = on_mosaic(built)

    def queries_of(tail: str, **query: Any) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert api.get(url(built, tail), query).status_code == 200
        return len(queries)

    paths: list[tuple[str, dict[str, Any]]] = [
        ("projected-rois", {}),
        ("projected-rois", {"pts": 80}),
        ("roi-frames", {"roi": str(roi.pk)}),
    ]
    on_frame(built, 2)
    before = [queries_of(tail, **query) for tail, query in paths * 2][
        -len(paths) :
    ]  # noted in the log
    for index in range(3):
        on_mosaic(built, left=20 * index)
        on_frame(built, index)
    assert [queries_of(tail, **query) for tail, query in paths] == before
    assert max(before) <= 5


def test_there_and_back_is_the_same_outline() -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        H = np.eye(3) + rng.normal(size=(3, 3)) * np.array([[0.1], [0.1], [1e-4]])
        large = shapely.box(-1e6, -1e6, 1e6, 1e6)
        there = projected_geometry(square(20, 20, 30), by(H), large)
        assert there is not None
        back = projected_geometry(there[0], by(np.linalg.inv(H)), large)
        assert back is not None
        projected = shapely.from_geojson(shapely.to_geojson(shapely.geometry.shape(back[0])))
        truth = shapely.geometry.shape(square(20, 20, 30))
        assert shapely.symmetric_difference(projected, truth).area < 2


def test_holes_and_parts_remain_and_lines_are_dropped() -> None:
    hole = [[30, 30], [40, 30], [40, 40], [30, 40], [30, 30]]
    outer = square(20, 20, 40)["coordinates"][0]
    projected = projected_geometry(
        {"type": "Polygon", "coordinates": [outer, hole]}, by(np.eye(3)), VIEW
    )
    assert projected is not None
    assert shapely.geometry.shape(projected[0]).area == pytest.approx(1500)
    two = {
        "type": "MultiPolygon",
        "coordinates": [square(5, 5, 10)["coordinates"], square(50, 5, 10)["coordinates"]],
    }
    projected = projected_geometry(two, by(np.eye(3)), VIEW)
    assert projected is not None
    assert projected[0]["type"] == "MultiPolygon"
    assert projected_geometry(square(99, 10, 10), by(np.eye(3)), VIEW) is None  # touches the edge
    assert projected_geometry(square(10, 10, 10), by(np.diag([1.0, 1, -1])), VIEW) is None  # behind


def test_a_mosaic_without_registered_frames_shows_none(built: Mosaic) -> None:
    roi = on_mosaic(built)
    MosaicFrame.objects.update(status="failed")
    assert frames_of_roi(built, roi) == []


BENT = np.zeros((9, 9, 2))
BENT[..., 1] = 4 * np.sin(np.linspace(0, np.pi, 9))[None, :]
"""Down by four px in the middle columns, by nothing at the rim."""


def test_a_frame_with_a_mesh_bends_the_outline_and_locates_the_point(
    built: Mosaic, annotator: User
) -> None:
    roi = on_mosaic(built)
    flat = {frame.frame.index: frame for frame in frames_of_roi(built, roi)}
    MosaicFrame.objects.update(mesh=BENT.tolist())
    bent = {frame.frame.index: frame for frame in frames_of_roi(built, roi)}
    index = min(flat.keys() & bent.keys())
    x, y = flat[index].frame.xy_frame
    at = np.interp(x, np.linspace(0, 99, 9), BENT[0, :, 1])
    assert bent[index].frame.xy_frame == pytest.approx((x, y + at), abs=0.02)
    corners = len(bent[index].geometry["coordinates"][0])
    assert corners > len(flat[index].geometry["coordinates"][0])
    shown = rois_in_frame(annotator, built, pts=bent[index].frame.pts)
    assert shown[0].geometry == bent[index].geometry


def test_through_a_mesh_and_back_is_the_same_outline() -> None:
    maps = FrameMaps(np.eye(3)[None], BENT[None], (100, 80))
    large = shapely.box(-1e6, -1e6, 1e6, 1e6)
    there = projected_geometry(square(30, 20, 40), maps.to_plane, large, 2.0)
    assert there is not None
    assert shapely.geometry.shape(there[0]).bounds[1] == pytest.approx(16, abs=0.2)
    back = projected_geometry(there[0], maps.to_frame, large, 2.0)
    assert back is not None
    truth = shapely.geometry.shape(square(30, 20, 40))
    assert shapely.symmetric_difference(shapely.geometry.shape(back[0]), truth).area < 4

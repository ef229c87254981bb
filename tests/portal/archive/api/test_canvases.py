"""Canvases over REST."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.archive.models import Slide, Video
from portal.labs.models import User

pytestmark = pytest.mark.django_db


def test_a_canvas_has_the_shape_of_the_contract(api: APIClient, slide: Slide) -> None:
    canvas = api.get(f"/api/v1/canvases/{slide.canvas_id}/").json()
    assert canvas["kind"] == "slide"
    assert canvas["case"] == {"id": str(slide.case_id), "accession": "S-1"}
    assert canvas["mpp_x"] == pytest.approx(0.5, rel=1e-3)
    assert set(canvas["levels"][0]) == {
        "width", "height", "downsample", "tile_width", "tile_height",
    }  # fmt: skip
    assert canvas["levels"][0]["downsample"] == 1.0
    assert "{z}/{x}/{y}.jpg" in canvas["tile_url"]
    assert (canvas["video"], canvas["can_annotate"]) == (None, True)


def test_a_video_canvas_names_its_frames(api: APIClient, video: Video) -> None:
    canvas = api.get(f"/api/v1/canvases/{video.canvas_id}/").json()
    assert (canvas["tile_url"], canvas["levels"]) == (None, [])
    shown = canvas["video"]
    assert shown["frame_count"] == 30
    first = api.get(shown["frames_url"]).json()["frames"][0]
    assert api.get(shown["frame_url"].replace("{pts}", str(first["pts"]))).status_code == 200
    assert api.get(shown["media_url"]).status_code == 200


def test_a_viewer_may_not_annotate(api_as: Any, viewer: User, slide: Slide) -> None:
    canvas = api_as(viewer).get(f"/api/v1/canvases/{slide.canvas_id}/").json()
    assert canvas["can_annotate"] is False


def test_an_unknown_pts_is_not_rounded(api: APIClient, video: Video) -> None:
    pts = [f["pts"] for f in api.get(f"/api/v1/videos/{video.pk}/frames/").json()["frames"]]
    answer = api.get(f"/api/v1/canvases/{video.canvas_id}/frames/{pts[3] + 1}.jpg")
    assert (answer.status_code, answer.json()["code"]) == (404, "frame-not-found")
    assert answer.json()["nearest"] == [pts[3], pts[4]]
    assert api.get(f"/api/v1/canvases/{video.canvas_id}/frames/-5.jpg").status_code == 404


def test_frames_and_thumbnails_have_etags(api: APIClient, video: Video) -> None:
    for path in ("frames/0.jpg", "thumbnail.jpg"):
        url = f"/api/v1/canvases/{video.canvas_id}/{path}"
        first = api.get(url)
        assert first.content.startswith(b"\xff\xd8")
        again = api.get(url, headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_a_slide_has_no_frames_and_a_video_no_tiles(
    api: APIClient, slide: Slide, video: Video
) -> None:
    assert api.get(f"/api/v1/canvases/{slide.canvas_id}/frames/0.jpg").status_code == 404
    assert api.get(f"/api/v1/canvases/{video.canvas_id}/tiles/0/0/0.jpg").status_code == 404


def test_an_image_element_is_served_and_its_errors_are_problems(
    api: APIClient, slide: Slide
) -> None:
    base = f"/api/v1/canvases/{slide.canvas_id}/tiles"
    assert api.get(f"{base}/0/0/0.jpg", headers={"Accept": "image/jpeg"}).status_code == 200
    lost = api.get(f"{base}/7/0/0.jpg", headers={"Accept": "image/jpeg"})
    assert (lost.status_code, lost.headers["Content-Type"]) == (404, "application/problem+json")

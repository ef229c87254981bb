"""Canvases over REST."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rest_framework.test import APIClient

from ml.imaging.slides.jpeg import encode_jpeg
from ml.imaging.videos.video import read_frame
from portal.archive.models import Canvas, Slide, Video
from portal.archive.selectors.frame_runs import RUN_FRAMES
from portal.archive.selectors.frames import SCHEME
from portal.archive.storage.files import resolve
from portal.audit.models import AuditEntry
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


def test_a_frame_brings_its_neighbours_along(api: APIClient, video: Video, storage: Path) -> None:
    rows = api.get(f"/api/v1/videos/{video.pk}/frames/").json()["frames"]
    assert len(rows) > RUN_FRAMES
    url = f"/api/v1/canvases/{video.canvas_id}/frames/{{}}.jpg"
    requested = api.get(url.format(rows[7]["pts"])).content
    folder = storage / "cache" / str(video.canvas_id) / f"frames-{SCHEME}"
    wanted = {f"{row['pts']}.jpg" for row in rows[:RUN_FRAMES]}
    for thread in threading.enumerate():
        if "_work" in thread.name:  # it decodes the others after the answer
            thread.join(20)
    assert {path.name for path in folder.glob("[0-9]*.jpg")} == wanted
    assert (folder / f"{rows[7]['pts']}.jpg").read_bytes() == requested


def test_every_frame_of_a_run_is_the_frame_decoded_by_itself(
    api: APIClient, video: Video, storage: Path
) -> None:
    rows = api.get(f"/api/v1/videos/{video.pk}/frames/").json()["frames"]
    source = resolve(Canvas.objects.get(pk=video.canvas_id).pixels_path)
    for at in (0, 11, 23, 24, 29):
        pts = rows[at]["pts"]
        answer = api.get(f"/api/v1/canvases/{video.canvas_id}/frames/{pts}.jpg")
        assert answer.content == encode_jpeg(read_frame(source, pts)), at


def test_the_filmstrip_shows_the_video_from_end_to_end(api: APIClient, video: Video) -> None:
    shown = api.get(f"/api/v1/canvases/{video.canvas_id}/").json()["video"]
    answer = api.get(shown["filmstrip_url"])
    strip = np.asarray(Image.open(io.BytesIO(answer.content)).convert("L"), np.float64)
    count = shown["filmstrip_count"]
    assert (count, strip.shape) == (30, (90, 30 * 120))
    rows = api.get(f"/api/v1/videos/{video.pk}/frames/").json()["frames"]
    source = resolve(Canvas.objects.get(pk=video.canvas_id).pixels_path)
    for at in (0, 14, 29):
        frame = Image.fromarray(read_frame(source, rows[at]["pts"])).convert("L").resize((120, 90))
        off = np.abs(strip[:, at * 120 : (at + 1) * 120] - np.asarray(frame, np.float64))
        assert np.median(off) < 4, at
    response = api.get(shown["filmstrip_url"], headers={"If-None-Match": answer.headers["ETag"]})
    assert response.status_code == 304


def test_a_slide_has_no_filmstrip(api: APIClient, slide: Slide) -> None:
    assert api.get(f"/api/v1/canvases/{slide.canvas_id}/filmstrip.jpg").status_code == 404


def test_the_pixel_size_is_set_where_the_file_names_none(
    api: APIClient, still: Slide, annotator: User
) -> None:
    address = f"/api/v1/canvases/{still.canvas_id}/"
    before = api.get(address).json()
    assert (before["mpp_x"], before["can_scale"], before["is_scaled_by_hand"]) == (
        None, True, False,
    )  # fmt: skip
    after = api.patch(address, {"mpp_x": 0.25}).json()
    assert after == before | {"mpp_x": 0.25, "mpp_y": 0.25, "is_scaled_by_hand": True}
    again = api.patch(address, {"mpp_x": 0.5, "mpp_y": 0.4}).json()
    assert (again["mpp_x"], again["mpp_y"], again["can_scale"]) == (0.5, 0.4, True)
    back = api.patch(address, {"mpp_x": None})
    assert (back.status_code, back.json()) == (200, before)
    noted = AuditEntry.objects.filter(action="canvas.scaled").order_by("pk")
    assert [entry.details for entry in noted] == [
        {"mpp_x": 0.25, "mpp_y": 0.25},
        {"mpp_x": 0.5, "mpp_y": 0.4, "before": 0.25},
        {"before": 0.5},
    ]
    assert {(entry.actor_id, entry.object_id) for entry in noted} == {
        (annotator.pk, still.canvas_id)
    }


@pytest.mark.parametrize("mpp", [0, -1, 0.001, 1001, "wide"])
def test_a_pixel_size_beyond_reason_is_refused(api: APIClient, still: Slide, mpp: Any) -> None:
    answer = api.patch(f"/api/v1/canvases/{still.canvas_id}/", {"mpp_x": mpp})
    assert answer.status_code == 400
    assert Canvas.objects.get(pk=still.canvas_id).mpp_x is None


def test_the_pixel_size_of_a_file_stays(api: APIClient, slide: Slide) -> None:
    address = f"/api/v1/canvases/{slide.canvas_id}/"
    before = api.get(address).json()
    answer = api.patch(address, {"mpp_x": 3})
    assert (answer.status_code, answer.json()["code"]) == (409, "scale-of-file")
    assert api.patch(address, {"mpp_x": None}).status_code == 409
    assert api.get(address).json() == before
    assert before["can_scale"] is False


def test_a_video_has_no_one_pixel_size(api: APIClient, video: Video) -> None:
    address = f"/api/v1/canvases/{video.canvas_id}/"
    assert api.patch(address, {"mpp_x": 3}).status_code == 400
    assert api.get(address).json()["can_scale"] is False

"""Upload to tile and to frame, through the ledger."""

from __future__ import annotations

from typing import Any

from portal.archive.models import Slide, Video


def test_a_slide_shows_its_tiles(slide: Slide, api: Any) -> None:
    canvas = api.get(f"/api/v1/canvases/{slide.canvas_id}/").json()
    assert (canvas["kind"], canvas["width"], canvas["height"]) == ("slide", 1200, 900)
    tile = api.get(f"/api/v1/canvases/{slide.canvas_id}/tiles/0/0/0.jpg")
    assert tile.status_code == 200
    assert tile.content.startswith(b"\xff\xd8")


def test_a_still_shows_its_tiles(still: Slide, api: Any) -> None:
    tile = api.get(f"/api/v1/canvases/{still.canvas_id}/tiles/0/0/0.jpg")
    assert tile.status_code == 200


def test_a_video_shows_its_frames(video: Video, api: Any) -> None:
    page = api.get(f"/api/v1/videos/{video.pk}/frames/").json()
    assert page["count"] == 30
    pts = page["frames"][7]["pts"]
    frame = api.get(f"/api/v1/canvases/{video.canvas_id}/frames/{pts}.jpg")
    assert frame.status_code == 200

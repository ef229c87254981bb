"""REST of mosaics."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from portal.archive.models import Video
from portal.labs.models import User
from portal.mosaics.models import Mosaic, MosaicFrame

MOSAICS = "/api/v1/mosaics/"


def url(mosaic: Mosaic, tail: str = "") -> str:
    return f"{MOSAICS}{mosaic.pk}/{tail}"


def test_asking_for_a_mosaic_is_accepted_with_its_job(api: APIClient, ready_video: Video) -> None:
    answer = api.post(MOSAICS, {"video": str(ready_video.pk)})
    assert answer.status_code == 202
    body = answer.json()
    assert answer["Location"].endswith(f"/api/v1/jobs/{body['job']['id']}/")
    assert (body["state"], body["job"]["state"], body["canvas"]) == ("preparing", "queued", None)
    again = api.post(MOSAICS, {"video": str(ready_video.pk)})
    assert (again.status_code, again.json()["job"]["id"]) == (202, body["job"]["id"])
    assert Mosaic.objects.count() == 1


def test_a_built_one_is_answered_with_200(api: APIClient, built: Mosaic) -> None:
    answer = api.post(MOSAICS, {"video": str(built.video_id)})
    assert (answer.status_code, answer.json()["job"]) == (200, None)


@pytest.mark.parametrize("body", [{}, {"video": "x"}, {"video": None}, [], {"config": {"step": 2}}])
def test_a_body_without_a_video_is_refused(api: APIClient, db: None, body: Any) -> None:
    assert api.post(MOSAICS, body).status_code == 400


def test_a_wrong_configuration_is_a_problem(api: APIClient, ready_video: Video) -> None:
    body = {"video": str(ready_video.pk), "config": {"speed": 2}}
    answer = api.post(MOSAICS, body)
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert "unknown 'speed'" in answer.json()["detail"]


def test_a_video_that_is_not_ready_is_a_conflict(api: APIClient, ready_video: Video) -> None:
    Video.objects.update(state="preparing")
    answer = api.post(MOSAICS, {"video": str(ready_video.pk)})
    assert (answer.status_code, answer.json()["code"]) == (409, "video-not-ready")


def test_a_mosaic_with_its_report(api: APIClient, built: Mosaic) -> None:
    body = api.get(url(built)).json()
    assert (body["width"], body["height"], body["motion_model"]) == (170, 80, "affine")
    assert body["report"] == {
        "frames": 8,
        "registered": 6,
        "skipped": 1,
        "failed": 1,
        "reasons": [
            {"status": "skipped", "code": "blurred", "reason": "blurred", "count": 1},
            {"status": "failed", "code": "no-match", "reason": "no match", "count": 1},
        ],
    }


def test_a_failed_one_says_why(api: APIClient, built: Mosaic) -> None:
    Mosaic.objects.update(state="failed", error_code="mosaic-failed", error_message="No two.")
    body = api.get(url(built)).json()
    assert body["error"] == {"code": "mosaic-failed", "message": "No two."}


def test_lists_are_filtered(api: APIClient, built: Mosaic) -> None:
    for query, count in (
        ({}, 1),
        ({"video": str(built.video_id)}, 1),
        ({"case": str(built.case_id)}, 1),
        ({"case": str(uuid.uuid4())}, 0),
        ({"state": "failed"}, 0),
    ):
        assert api.get(MOSAICS, query).json()["count"] == count
    assert api.get(MOSAICS, {"state": "odd"}).status_code == 400


def test_frames_are_paged_and_filtered(api: APIClient, built: Mosaic) -> None:
    page = api.get(url(built, "frames/"), {"page_size": 3}).json()
    assert (page["count"], len(page["results"])) == (8, 3)
    assert page["results"][1] == {
        "index": 1,
        "pts": 40,
        "status": "registered",
        "reason": "",
        "reason_code": "",
        "part": 0,
        "H_mosaic_from_frame": [[1, 0, 10], [0, 1, 0], [0, 0, 1]],
        "covariance": None,
        "uncertainty_px": None,
        "sharpness": 0.1,
        "links": 0,
        "error_px": None,
        "is_key": True,
    }
    failed = api.get(url(built, "frames/"), {"status": "failed"}).json()["results"]
    assert [row["index"] for row in failed] == [5]
    assert api.get(url(built, "frames/"), {"status": "lost"}).status_code == 400


def test_frames_at_a_point(api: APIClient, built: Mosaic) -> None:
    body = api.get(url(built, "frames-at/"), {"x": 45, "y": 40}).json()
    assert body["count"] == 4
    video_canvas = built.video.canvas_id
    assert body["results"][2] == {
        "index": 1,
        "pts": 40,
        "time_s": 0.04,
        "xy_frame": [35, 40],
        "from_centre_px": 14.51,
        "sharpness": 0.1,
        "uncertainty_px": None,
        "outline": [[10, 0], [109, 0], [109, 79], [10, 79]],
        "image_url": f"/api/v1/canvases/{video_canvas}/frames/40.jpg",
        "viewer_url": f"/canvases/{video_canvas}/?t=40&x=35&y=40",
    }
    assert (
        len(api.get(url(built, "frames-at/"), {"x": 45, "y": 40, "limit": 1}).json()["results"])
        == 1
    )
    for query, status in (
        ({"x": 45, "y": 1, "part": 2}, 404),
        ({"x": 45, "y": 1, "part": -1}, 400),
        ({"x": 45}, 400),
        ({"x": "nan", "y": 1}, 400),
        ({"x": "a", "y": 1}, 400),
        ({"x": 4500, "y": 1}, 404),
    ):
        assert api.get(url(built, "frames-at/"), query).status_code == status


def test_another_labs_mosaics_and_videos_are_not_found(
    api: APIClient, foreign_built: Mosaic
) -> None:
    answers = [
        api.get(url(foreign_built)),
        api.get(url(foreign_built, "frames/")),
        api.get(url(foreign_built, "frames-at/"), {"x": 1, "y": 1}),
        api.post(MOSAICS, {"video": str(foreign_built.video_id)}),
    ]
    assert [answer.status_code for answer in answers] == [404] * 4
    assert api.get(MOSAICS).json()["count"] == 0
    assert api.get(MOSAICS, {"video": str(foreign_built.video_id)}).json()["count"] == 0


def test_roles(api_as: Any, viewer: User, annotator: User, built: Mosaic) -> None:
    assert api_as(viewer).get(url(built)).status_code == 200
    assert api_as(viewer).get(url(built, "frames/")).status_code == 200
    body = {"video": str(built.video_id), "config": {"step": 2}}
    assert api_as(viewer).post(MOSAICS, body).status_code == 403
    assert api_as(annotator).post(MOSAICS, body).status_code == 202


def test_anonymous_is_turned_away(built: Mosaic) -> None:
    client = APIClient()
    for path in (MOSAICS, url(built), url(built, "frames/"), url(built, "frames-at/")):
        assert client.get(path).status_code == 401
    assert client.post(MOSAICS, {"video": str(built.video_id)}, format="json").status_code == 401


def test_queries_do_not_grow_with_frames_or_mosaics(api: APIClient, built: Mosaic) -> None:
    def asked(path: str, **query: Any) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert api.get(path, query).status_code == 200
        return len(queries)

    paths: list[tuple[str, dict[str, Any]]] = [
        (MOSAICS, {}),
        (url(built), {}),
        (url(built, "frames/"), {"page_size": 5000}),
        (url(built, "frames-at/"), {"x": 45, "y": 40}),
        (url(built, "outlines/"), {}),
    ]
    before = [asked(path, **query) for path, query in paths]
    MosaicFrame.objects.bulk_create(
        MosaicFrame(mosaic=built, index=i, pts=40 * i, status="failed") for i in range(8, 308)
    )
    for step in range(2, 7):
        body = {"video": str(built.video_id), "config": {"step": step}}
        assert api.post(MOSAICS, body).status_code == 202
    assert [asked(path, **query) for path, query in paths] == before
    assert max(before) <= 4

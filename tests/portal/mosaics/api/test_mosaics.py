"""REST of mosaics."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from portal.archive.models import Video
from portal.archive.storage import files as archive_storage
from portal.labs.models import User
from portal.mosaics.build_cache import build_cache_preview
from portal.mosaics.models import Mosaic, MosaicComponent, MosaicFrame
from portal.mosaics.services.mosaics import mosaic_create

MOSAICS = "/api/v1/mosaics/"


def url(mosaic: Mosaic, tail: str = "") -> str:
    return f"{MOSAICS}{mosaic.pk}/{tail}"


def test_requesting_a_mosaic_is_accepted_with_its_job(api: APIClient, ready_video: Video) -> None:
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


def test_lost_frames_are_named_by_seconds_and_reason_in_every_state(
    api: APIClient, built: Mosaic
) -> None:
    MosaicFrame.objects.filter(index=4).update(status="skipped", reason_code="blurred")
    for state in ("ready", "failed"):
        Mosaic.objects.update(state=state)
        assert api.get(url(built)).json()["lost"] == [
            {
                "status": "skipped",
                "code": "blurred",
                "reason": "blurred",
                "frames": 2,
                "first_s": 0.12,
                "last_s": 0.16,
                "first_index": 3,
                "last_index": 4,
            },
            {
                "status": "failed",
                "code": "no-match",
                "reason": "no match",
                "frames": 1,
                "first_s": 0.2,
                "last_s": 0.2,
                "first_index": 5,
                "last_index": 5,
            },
        ]


def test_a_failed_mosaic_has_a_reason(api: APIClient, built: Mosaic) -> None:
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
        assert len(api.get(MOSAICS, query).json()["results"]) == count
    assert api.get(MOSAICS, {"state": "odd"}).status_code == 400


def test_frames_are_paged_and_filtered(api: APIClient, built: Mosaic) -> None:
    page = api.get(url(built, "frames/"), {"page_size": 3}).json()
    assert len(page["results"]) == 3
    assert page["results"][1] == {
        "index": 1,
        "pts": 40,
        "status": "registered",
        "reason": "",
        "reason_code": "",
        "component": 0,
        "H_mosaic_from_frame": [[1, 0, 10], [0, 1, 0], [0, 0, 1]],
        "mesh": None,
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
    body = api.get(url(built, "frames-at-point/"), {"x": 45, "y": 40}).json()
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
        len(
            api.get(url(built, "frames-at-point/"), {"x": 45, "y": 40, "limit": 1}).json()[
                "results"
            ]
        )
        == 1
    )
    for query, status in (
        ({"x": 45, "y": 1, "component": 2}, 404),
        ({"x": 45, "y": 1, "component": -1}, 400),
        ({"x": 45}, 400),
        ({"x": "nan", "y": 1}, 400),
        ({"x": "a", "y": 1}, 400),
        ({"x": 4500, "y": 1}, 404),
    ):
        assert api.get(url(built, "frames-at-point/"), query).status_code == status


def test_outlines_give_every_frame_in_columns(api: APIClient, built: Mosaic) -> None:
    body = api.get(url(built, "outlines/")).json()
    assert (body["count"], len(body["outline"]), body["pts"][2]) == (8, 8, 80)
    assert body["outline"][1] == [10, 0, 109, 0, 109, 79, 10, 79]


def test_a_mosaic_is_found_by_the_canvas_of_any_part(api: APIClient, built: Mosaic) -> None:
    body = api.get(MOSAICS, {"canvas": str(built.canvas_id)}).json()
    assert [row["id"] for row in body["results"]] == [str(built.pk)]
    component = body["results"][0]["components"][0]
    assert (component["index"], component["canvas"], component["layers"]) == (
        0,
        str(built.canvas_id),
        [],
    )
    assert len(api.get(MOSAICS, {"canvas": str(built.video.canvas_id)}).json()["results"]) == 0


def test_a_layer_is_a_png_cached_for_good(api: APIClient, built: Mosaic) -> None:
    folder = archive_storage.derived_folder(built.pk)
    folder.mkdir(parents=True)
    (folder / "layer-time.png").write_bytes(b"png")
    layer = {"name": "time", "png": "layer-time.png", "unit": "s", "downsample": 2.0}
    MosaicComponent.objects.update(layers=[layer | {"minimum": 0.0, "maximum": 3.0}])
    listed = api.get(url(built)).json()["components"][0]["layers"][0]
    assert listed["maximum"] == 3.0
    answer = api.get(listed["url"], headers={"Accept": "image/*"})
    assert (answer.status_code, answer["Content-Type"], answer.content) == (
        200,
        "image/png",
        b"png",
    )
    assert "immutable" in answer["Cache-Control"]
    again = api.get(listed["url"], headers={"If-None-Match": answer["ETag"]})
    assert again.status_code == 304
    missing = api.get(url(built, "layers/count.png"))
    assert (missing.status_code, "it has time" in missing.json()["detail"]) == (404, True)


def test_the_preview_grows_while_it_is_built(api: APIClient, ready_video: Video) -> None:
    mosaic = mosaic_create(
        video=ready_video, user=User.objects.get(email__startswith="annot")
    ).mosaic
    assert api.get(url(mosaic, "preview.jpg")).status_code == 404
    path = build_cache_preview(mosaic)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"first")
    first = api.get(url(mosaic, "preview.jpg"))
    assert (first.content, first["Content-Type"]) == (b"first", "image/jpeg")
    assert first["Cache-Control"] == "private, no-cache"
    path.write_bytes(b"second")
    assert api.get(url(mosaic, "preview.jpg")).content == b"second"


def test_downloads_of_a_built_mosaic(api: APIClient, mosaic: Mosaic) -> None:
    tiff = api.get(url(mosaic, "pyramid.tif"))
    assert b"".join(tiff.streaming_content)[:2] == b"II"
    assert 'filename="sweep mosaic.tif"' in tiff["Content-Disposition"].replace(".mp4", "")
    component = api.get(url(mosaic, "pyramid.tif"), headers={"Range": "bytes=0-3"})
    assert (component.status_code, component["Content-Length"]) == (206, "4")
    manifest = json.loads(b"".join(api.get(url(mosaic, "manifest.json")).streaming_content))
    assert len(manifest["frames"]) == 10


def test_files_of_a_mosaic_that_is_not_ready_are_a_conflict(api: APIClient, built: Mosaic) -> None:
    built.components.all().delete()
    for tail in ("pyramid.tif", "manifest.json", "image.png", "layers/time.png"):
        answer = api.get(url(built, tail))
        assert (answer.status_code, answer["Content-Type"]) == (409, "application/problem+json")


def test_an_estimate_counts_the_span_and_takes_the_rate_of_earlier_builds(
    api: APIClient, video: Video, built: Mosaic
) -> None:
    """Eight frames of 100 x 80 px took 1.5 s; these have 224 x 176 px."""
    query = {"video": str(video.pk), "start_s": 0.1, "end_s": 0.3, "step": 2}
    body = api.get(MOSAICS + "estimate/", query).json()
    assert (body["frames"], body["used"], body["builds"]) == (5, 2, 1)
    assert body["seconds"] == pytest.approx(1.5 / 8 / (100 * 80) * 2 * 224 * 176, abs=0.1)
    Mosaic.objects.update(state="failed")
    assert api.get(MOSAICS + "estimate/", query).json()["seconds"] is None


def test_an_estimate_without_frames_lists_the_available_spans(api: APIClient, video: Video) -> None:
    for more, words in (
        ({"start_s": 5}, "from 0.00 s to 0.36 s"),
        ({"start_s": 0.3, "end_s": 0.2}, "not after its start"),
        ({"start_s": "nan"}, ""),
        ({"step": 0}, ""),
    ):
        answer = api.get(MOSAICS + "estimate/", {"video": str(video.pk), **more})
        assert answer.status_code == 400
        assert words in answer.json()["detail"]


def test_a_span_without_frames_is_refused(api: APIClient, video: Video) -> None:
    body = {"video": str(video.pk), "config": {"start_s": 2, "end_s": 3}}
    answer = api.post(MOSAICS, body)
    assert (answer.status_code, answer.json()["code"]) == (400, "span-empty")
    assert not Mosaic.objects.exists()


def test_queries_do_not_grow_with_frames_or_mosaics(api: APIClient, built: Mosaic) -> None:
    def queries_of(path: str, **query: Any) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert api.get(path, query).status_code == 200
        return len(queries)

    paths: list[tuple[str, dict[str, Any]]] = [
        (MOSAICS, {}),
        (url(built), {}),
        (url(built, "frames/"), {"page_size": 5000}),
        (url(built, "frames-at-point/"), {"x": 45, "y": 40}),
        (url(built, "outlines/"), {}),
    ]
    before = [queries_of(path, **query) for path, query in paths * 2][
        -len(paths) :
    ]  # noted in the log
    MosaicFrame.objects.bulk_create(
        MosaicFrame(mosaic=built, index=i, pts=40 * i, status="failed") for i in range(8, 308)
    )
    for step in range(2, 7):
        body = {"video": str(built.video_id), "config": {"step": step}}
        assert api.post(MOSAICS, body).status_code == 202
    assert [queries_of(path, **query) for path, query in paths] == before
    assert max(before) <= 5

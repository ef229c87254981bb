"""REST of ROIs and labels: conditions, windows, roles, other labs, query counts."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from portal.annotations.models import Label, Roi
from portal.annotations.services.rois import roi_create, roi_update
from portal.archive.models import Canvas
from portal.core.registry import Registry
from portal.labs.models import User
from tests.portal.annotations.support import box, without_embedding

ROIS = "/api/v1/rois/"
PROBLEM = "application/problem+json"


def url(roi: Roi, tail: str = "") -> str:
    return f"{ROIS}{roi.pk}/{tail}"


def if_match(version: int) -> dict[str, str]:
    return {"If-Match": f'"{version}"'}


def test_drawing_answers_the_roi_with_etag_and_location(
    api: APIClient, canvas: Canvas, label: Label
) -> None:
    answer = api.post(
        ROIS,
        {
            "canvas": str(canvas.pk),
            "geometry": box(10, 10, 110, 60),
            "label": str(label.pk),
            "name": "gland",
        },
    )
    assert answer.status_code == 201
    body = answer.json()
    assert answer["ETag"] == '"1"'
    assert answer["Location"].endswith(f"/api/v1/rois/{body['id']}/")
    assert body["area_px"] == 5000
    assert body["area_um2"] == 1250
    assert body["bounds"] == [10, 10, 110, 60]
    assert (body["label"], body["frame"], body["version"]) == (str(label.pk), None, 1)
    assert (body["is_embedded"], body["created_by"]) == (False, "annotator@north.example")
    assert api.get(answer["Location"]).json() == body


def test_a_repaired_outline_is_reported(api: APIClient, canvas: Canvas) -> None:
    bow_tie = {"type": "Polygon", "coordinates": [[[0, 0], [10, 10], [10, 0], [0, 10]]]}
    body = api.post(ROIS, {"canvas": str(canvas.pk), "geometry": bow_tie}).json()
    assert body["geometry"]["type"] == "MultiPolygon"
    assert body["notes"] == ["open ring closed", "repaired: self-intersection"]


def test_the_same_request_twice_makes_one_roi(api: APIClient, canvas: Canvas) -> None:
    body = {"id": str(uuid.uuid4()), "canvas": str(canvas.pk), "geometry": box(1, 1, 9, 9)}
    assert api.post(ROIS, body).status_code == 201
    assert api.post(ROIS, body).status_code == 200
    other = api.post(ROIS, body | {"name": "other"})
    assert (other.status_code, other.json()["code"]) == (409, "id-taken")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"type":"Polygon","coordinates":[[[0,0],[9,NaN],[9,9]]]}', "vertex 2: y is nan"),
        ('{"type":"Polygon","coordinates":[[[0,0],[9,1e999],[9,9]]]}', "vertex 2: y is inf"),
        ('{"type":"Polygon","coordinates":[[[0,0],["NaN",9],[9,9]]]}', "x is 'NaN', not a number"),
        ('{"type":"Curve","coordinates":[[0,0],[9,9]]}', "not 'Curve'"),
        ('"POLYGON((0 0, 1 1, 2 2))"', "expected a GeoJSON object"),
        ('{"type":"Polygon","coordinates":[[[5000,0],[5009,0],[5009,9]]]}', "outside the canvas"),
        ('{"type":"Polygon","coordinates":' + "[" * 5000 + "]" * 5000 + "}", "nested too deeply"),
        ("[", "JSON parse error"),
    ],
)
def test_bad_outlines_are_refused_as_problems(
    api: APIClient, canvas: Canvas, text: str, words: str
) -> None:
    body = f'{{"canvas":"{canvas.pk}","geometry":{text}}}'
    answer = api.post(ROIS, body, content_type="application/json")
    assert (answer.status_code, answer["Content-Type"]) == (400, PROBLEM)
    assert words in answer.json()["detail"]
    assert not Roi.objects.exists()


@pytest.mark.slow
def test_200_000_vertices_are_refused_with_the_limit(api: APIClient, canvas: Canvas) -> None:
    ring = [[i % 1000, i // 1000] for i in range(200_000)]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    answer = api.post(ROIS, {"canvas": str(canvas.pk), "geometry": geometry})
    assert answer.status_code == 400
    assert answer.json()["vertices"] == 200_000
    assert answer.json()["limit"] == 100_000


def test_a_body_beyond_the_limit_is_refused(
    api: APIClient, canvas: Canvas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.annotations.api.rois.RoiApi.body_limit_bytes", 100)
    answer = api.post(ROIS, {"canvas": str(canvas.pk), "geometry": box(1, 1, 9, 9)})
    assert answer.status_code == 413


def test_an_unknown_label_is_named(
    api: APIClient, canvas: Canvas, roi: Roi, foreign_label: Label
) -> None:
    for unknown in (uuid.uuid4(), foreign_label.pk):
        body = {"canvas": str(canvas.pk), "geometry": box(1, 1, 9, 9), "label": str(unknown)}
        for answer in (
            api.post(ROIS, body),
            api.patch(url(roi), {"label": str(unknown)}, headers=if_match(1)),
        ):
            assert (answer.status_code, answer.json()["code"]) == (400, "unknown-label")
            assert f"label: no label {unknown} in this lab" in answer.json()["detail"]


def test_a_change_needs_if_match(api: APIClient, roi: Roi) -> None:
    for answer in (api.patch(url(roi), {"name": "x"}), api.delete(url(roi))):
        assert (answer.status_code, answer["Content-Type"]) == (428, PROBLEM)
    bad = api.patch(url(roi), {"name": "x"}, headers={"If-Match": "*"})
    assert bad.status_code == 400
    assert Roi.objects.get().version == 1


def test_a_stale_etag_is_answered_with_the_current_roi(
    api: APIClient, roi: Roi, reviewer: User
) -> None:
    fresh = Roi.objects.select_related("canvas").get()
    roi_update(roi=fresh, user=reviewer, expected_version=1, changes={"name": "theirs"})
    for answer in (
        api.patch(url(roi), {"name": "mine"}, headers=if_match(1)),
        api.delete(url(roi), headers=if_match(1)),
        api.post(url(roi, "restore/"), headers=if_match(1)),
    ):
        body = answer.json()
        assert (answer.status_code, body["current_version"]) == (412, 2)
        assert body["current"]["name"] == "theirs"
        assert body["current"]["geometry"] == roi.geometry
    assert Roi.objects.get().name == "theirs"


def test_changing_deleting_and_undoing(api: APIClient, roi: Roi) -> None:
    changed = api.patch(url(roi), {"geometry": box(0, 0, 50, 50)}, headers=if_match(1))
    assert (changed.status_code, changed["ETag"]) == (200, '"2"')
    deleted = api.delete(url(roi), headers=if_match(2))
    assert (deleted.status_code, deleted["ETag"]) == (204, '"3"')
    assert api.get(ROIS).json()["count"] == 0
    assert api.get(ROIS, {"deleted": "true"}).json()["count"] == 1
    assert api.get(url(roi)).json()["deleted_at"]
    refused = api.patch(url(roi), {"name": "x"}, headers=if_match(3))
    assert (refused.status_code, refused.json()["code"]) == (409, "roi-deleted")
    restored = api.post(url(roi, "restore/"))
    assert (restored.status_code, restored["ETag"]) == (200, '"4"')
    assert restored.json()["deleted_at"] is None
    rows = api.get(url(roi, "revisions/")).json()["results"]
    assert [row["action"] for row in rows] == ["create", "update", "delete", "restore"]
    assert rows[0]["geometry"] == box(10, 10, 110, 60)
    assert {row["author"] for row in rows} == {"annotator@north.example"}


def test_only_reviewers_review(api_as: Any, roi: Roi, annotator: User, reviewer: User) -> None:
    body = {"review_state": "accepted"}
    refused = api_as(annotator).patch(url(roi), body, headers=if_match(1))
    assert refused.status_code == 403
    submit = {"review_state": "submitted"}
    assert api_as(annotator).patch(url(roi), submit, headers=if_match(1)).status_code == 200
    accepted = api_as(reviewer).patch(url(roi), body, headers=if_match(2))
    assert accepted.json()["review_state"] == "accepted"


def test_a_window_contains_the_rois_that_touch_it(
    api: APIClient, canvas: Canvas, annotator: User, label: Label
) -> None:
    for left, size in ((0, 10), (100, 20), (500, 200)):
        roi_create(
            canvas=canvas,
            user=annotator,
            geometry=box(left, left, left + size, left + size),
            label=label if left else None,
        )

    def lefts(**query: Any) -> list[float]:
        answer = api.get(ROIS, {"canvas": str(canvas.pk), **query})
        assert answer.status_code == 200, answer.json()
        return [row["bounds"][0] for row in answer.json()["results"]]

    assert lefts() == [0, 100, 500]
    assert lefts(left=5, top=5, right=110, bottom=110) == [0, 100]
    assert lefts(left=130) == [500]
    assert lefts(min_size_px=20) == [100, 500]
    assert lefts(label=str(label.pk)) == [100, 500]
    assert lefts(limit=2) == [500, 100]
    limited = api.get(ROIS, {"limit": 1}).json()
    assert (limited["count"], limited["next"]) == (3, None)


def test_centroids_come_without_geometry(api: APIClient, roi: Roi) -> None:
    row = api.get(ROIS, {"centroids": "true"}).json()["results"][0]
    assert (row["geometry"], row["centroid"]) == (None, [60, 35])


def test_a_frame_of_a_video(api: APIClient, video_canvas: Canvas) -> None:
    body = {"canvas": str(video_canvas.pk), "geometry": box(1, 1, 9, 9)}
    made = api.post(ROIS, body | {"frame": {"index": 3, "pts": 200}}).json()
    assert made["frame"] == {"index": 3, "pts": 200, "time_s": 0.2}
    assert made["area_um2"] is None
    for frame in (None, {"index": 3, "pts": 40}, {"pts": 1}, {"index": 9}):
        assert api.post(ROIS, body | {"frame": frame}).status_code == 400
    query = {"canvas": str(video_canvas.pk)}
    assert api.get(ROIS, query | {"frame": 3}).json()["count"] == 1
    assert api.get(ROIS, query | {"frame": 2}).json()["count"] == 0
    assert api.get(ROIS, query | {"frame_pts": 200}).json()["count"] == 1


@pytest.mark.parametrize(
    "query",
    [
        {"canvas": "x"},
        {"left": "nan"},
        {"right": "inf"},
        {"limit": "0"},
        {"limit": "1000000"},
        {"min_size_px": "-1"},
        {"frame": str(2**80)},
        {"frame_pts": str(2**80)},
        {"review_state": "maybe"},
    ],
)
def test_bad_filters_are_refused(api: APIClient, query: dict[str, str]) -> None:
    assert api.get(ROIS, query).status_code == 400


def test_geojson_out_and_in(api: APIClient, roi: Roi, annotator: User) -> None:
    path = f"/api/v1/canvases/{roi.canvas_id}/roi-file/"
    answer = api.get(path, headers={"Accept": "application/geo+json"})
    assert answer["Content-Type"] == "application/geo+json"
    assert answer["Content-Disposition"] == 'attachment; filename="Section 1-rois.geojson"'
    document = json.loads(b"".join(answer.streaming_content))
    document["features"].append({"type": "Feature", "geometry": {"type": "Circle"}})
    report = api.post(path, json.dumps(document), content_type="application/geo+json").json()
    assert (report["unchanged"], report["refused"]) == (1, 1)
    assert "not 'Circle'" in report["items"][1]["reason"]
    strict = api.post(f"{path}?strict=true", document)
    assert (strict.status_code, strict.json()["code"]) == (400, "import-refused")


def test_a_probe_reports_embedded_rois(
    api: APIClient, roi: Roi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "portal.annotations.selectors.embedded.EMBEDDED_PROBES", Registry({"test": (set,)})
    )
    assert api.get(url(roi)).json()["is_embedded"] is True
    assert api.get(ROIS).json()["results"][0]["is_embedded"] is True


def test_listing_1_and_300_rois_needs_equal_queries(
    api: APIClient,
    canvas: Canvas,
    annotator: User,
    label: Label,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_embedding(monkeypatch)

    def draw() -> None:
        roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9), label=label)

    draw()
    query = {"canvas": str(canvas.pk), "page_size": 1000}
    api.get(ROIS, query)  # the first is noted in the audit log
    with CaptureQueriesContext(connection) as for_one:
        assert len(api.get(ROIS, query).json()["results"]) == 1
    for _ in range(299):
        draw()
    with CaptureQueriesContext(connection) as for_300:
        assert len(api.get(ROIS, query).json()["results"]) == 300
    # count, page, and one question of each app that says what is embedded
    assert len(for_one) == len(for_300) <= 3


def test_writing_needs_a_fixed_number_of_queries(
    api: APIClient, roi: Roi, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    without_embedding(monkeypatch)  # only mine
    with django_assert_max_num_queries(15):
        api.patch(url(roi), {"geometry": box(0, 0, 5, 5)}, headers=if_match(1))

"""The list of ROIs: its rows say what each ROI says of itself, and its windows read an index."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from portal.annotations.models import Label, Roi
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas
from portal.labs.models import User
from tests.portal.annotations.support import box

ROIS = "/api/v1/rois/"
WINDOW = {"left": 0, "top": 0, "right": 900, "bottom": 900, "limit": 3}


def test_a_row_of_the_list_equals_the_detail_of_the_roi(
    api: APIClient, roi: Roi, video_canvas: Canvas, annotator: User, label: Label
) -> None:
    annotator.full_name = "Ann, the \u201cquoted\u201d"
    annotator.save()
    named = roi_create(
        canvas=roi.canvas,
        user=annotator,
        geometry=box(30, 30, 90, 90),
        label=label,
        name='a "b", \\ c: ü',
        is_locked=True,
    ).roi
    tracked = {"frame": {"index": 1}, "geometry": box(5, 5, 25, 25)}
    seen = api.post(ROIS, {"canvas": str(video_canvas.pk), **tracked}).json()
    rows = [
        *api.get(ROIS, {"canvas": str(roi.canvas_id)}).json()["results"],
        *api.get(ROIS, {"canvas": str(video_canvas.pk), "limit": 5}).json()["results"],
    ]
    assert {row["id"] for row in rows} == {str(roi.pk), str(named.pk), seen["id"]}
    assert next(row for row in rows if row["frame"])["frame"]["time_s"] > 0
    api.delete(f"{ROIS}{named.pk}/", headers={"If-Match": '"1"'})
    rows += api.get(ROIS, {"canvas": str(roi.canvas_id), "deleted": True}).json()["results"]
    for row in rows[:1] + rows[2:]:  # the second is the one that was deleted since
        assert row == api.get(f"{ROIS}{row['id']}/").json()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a tiny table needs no index there")
@pytest.mark.parametrize("query", [{}, {"limit": 3}, {"min_size_px": 2}, WINDOW])
def test_a_window_is_counted_and_chosen_without_reading_outlines(
    api: APIClient, roi: Roi, query: dict[str, Any]
) -> None:
    with CaptureQueriesContext(connection) as requested:
        api.get(ROIS, {"canvas": str(roi.canvas_id), **query})
    count, page = [
        request["sql"] for request in requested if 'FROM "annotations_roi"' in request["sql"]
    ][:2]
    for sql in (count, page):
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}".replace("%", "%%"))
            plan = " ".join(row[3] for row in cursor.fetchall())
        assert "USING COVERING INDEX roi_canvas_largest" in plan

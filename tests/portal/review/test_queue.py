"""The queue: its filters, its REST and its page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from portal.annotations.models import Label, Roi
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas
from portal.labs.models import User
from portal.review.models import RoiComment
from portal.review.services.comments import comment_add
from tests.portal.annotations.support import box

QUEUE, REVIEW = "/api/v1/reviews/", "/api/v1/rois/review/"


def queue_ids(client: Any, **requested: Any) -> list[str]:
    return [row["id"] for row in client.get(QUEUE, requested).json()["results"]]


def test_the_queue_contains_submitted_rois(
    api_as: Any, roi: Roi, canvas: Canvas, annotator: User, reviewer: User
) -> None:
    draft = roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9)).roi
    client = api_as(reviewer)
    assert queue_ids(client) == [str(roi.pk)]
    assert queue_ids(client, state="draft") == [str(draft.pk)]
    row = client.get(QUEUE).json()["results"][0]
    assert (row["label_name"], row["accession"], row["version"]) == ("Tumor", "A-1", 2)
    assert row["created_by"] == str(annotator)


@pytest.mark.parametrize(
    ("requested", "is_found"),
    [
        ({"case": "a-1"}, True),
        ({"case": "B-"}, False),
        ({"since": timezone.now().date().isoformat()}, True),
        ({"until": (timezone.now() - timedelta(days=1)).date().isoformat()}, False),
    ],
)
def test_filters_narrow_the_queue(
    api_as: Any, roi: Roi, reviewer: User, requested: dict[str, str], is_found: bool
) -> None:
    assert bool(queue_ids(api_as(reviewer), **requested)) is is_found


def test_filters_by_label_and_person(
    api_as: Any, roi: Roi, reviewer: User, annotator: User, label: Label
) -> None:
    client = api_as(reviewer)
    assert queue_ids(client, label=label.pk, person=annotator.pk) == [str(roi.pk)]
    assert queue_ids(client, person=reviewer.pk) == []


def test_verdicts_and_comments_over_rest(api_as: Any, roi: Roi, reviewer: User) -> None:
    client = api_as(reviewer)
    body = {"state": "rejected", "comment": "Too wide.", "rois": [{"id": roi.pk, "version": 2}]}
    answer = client.post(REVIEW, body, format="json")
    assert answer.json()["results"] == [
        {"id": str(roi.pk), "outcome": "done", "detail": "", "version": 3}
    ]
    thread = f"/api/v1/rois/{roi.pk}/thread/"
    response = client.post(thread, {"text": "See the left rim."}, format="json")
    assert response.status_code == 201
    assert (response.json()["kind"], response.json()["text"]) == ("comment", "See the left rim.")
    entries = client.get(thread).json()["results"]
    assert [row["kind"] for row in entries] == ["submitted", "rejected", "comment"]
    assert (entries[1]["text"], entries[2]) == ("Too wide.", response.json())
    assert client.get(QUEUE, {"state": "rejected"}).json()["results"][0]["comment_count"] == 2


def test_a_long_thread_comes_in_pages(
    api_as: Any, roi: Roi, reviewer: User, django_assert_max_num_queries: Any
) -> None:
    client, thread = api_as(reviewer), f"/api/v1/rois/{roi.pk}/thread/"
    for number in range(4):
        comment_add(roi=roi, user=reviewer, text=f"{number}")
    RoiComment.objects.update(created_at=timezone.now())  # at the same moment
    with django_assert_max_num_queries(8):
        all_rows = client.get(thread).json()
    assert (len(all_rows["results"]), all_rows["next"]) == (5, None)
    first = client.get(thread, {"page_size": 2}).json()
    second = client.get(first["next"]).json()
    comment_add(roi=roi, user=reviewer, text="the last word")
    third = client.get(second["next"]).json()
    rows = [*first["results"], *second["results"], *third["results"]]
    assert rows[:5] == all_rows["results"]
    assert [row["text"] for row in rows[5:]] == ["the last word"]
    assert client.get(third["previous"]).json()["results"] == second["results"]


def test_the_page_shows_the_queue_in_few_queries(
    client: Client,
    roi: Roi,
    canvas: Canvas,
    annotator: User,
    reviewer: User,
    django_assert_max_num_queries: Any,
) -> None:
    for left in range(20):
        roi_create(canvas=canvas, user=annotator, geometry=box(left, 1, left + 9, 9))
    client.force_login(reviewer)
    text = client.get("/review/").content.decode()
    assert str(roi.pk) in text and "Accept" in text
    with django_assert_max_num_queries(19):
        text = client.get("/review/", {"state": "draft"}).content.decode()
    assert text.count("data-review-row") == 20
    assert "Nothing matches" in client.get("/review/", {"case": "none"}).content.decode()


def test_a_viewer_looks_and_has_no_buttons(client: Client, roi: Roi, viewer: User) -> None:
    client.force_login(viewer)
    text = client.get("/review/").content.decode()
    assert str(roi.pk) in text
    assert "data-review-to" not in text

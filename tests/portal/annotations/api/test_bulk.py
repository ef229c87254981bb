"""Many ROIs as one step: all or nothing, under versions, each in the history, at a fixed price."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from portal.annotations.models import Label, Roi, RoiRevision
from portal.annotations.services import bulk
from portal.annotations.services.rois import roi_create, roi_restore, roi_update
from portal.archive.models import Canvas
from portal.labs.models import User
from tests.portal.annotations.support import box, names

BULK = "/api/v1/rois/bulk/"


@pytest.fixture
def rois(canvas: Canvas, annotator: User) -> list[Roi]:
    """Three rectangles in a row."""
    boxes = [box(x, 10, x + 50, 60) for x in (10, 110, 210)]
    return [roi_create(canvas=canvas, user=annotator, geometry=outline).roi for outline in boxes]


def send(api: APIClient, canvas: Canvas, *changes: dict[str, Any], key: str = "") -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    body = {"canvas": str(canvas.pk), "changes": list(changes)}
    return api.post(BULK, body, headers=headers)


def step(do: str, roi: Roi, version: int = 1, **more: Any) -> dict[str, Any]:
    return {"do": do, "id": str(roi.pk), "version": version, **more}


def test_one_call_creates_changes_and_deletes(
    api: APIClient, canvas: Canvas, rois: list[Roi], label: Label, annotator: User
) -> None:
    new = str(uuid.uuid4())
    answer = send(
        api,
        canvas,
        step("update", rois[0], label=str(label.pk), locked=True),
        step("update", rois[1], geometry=box(300, 300, 340, 320)),
        step("delete", rois[2]),
        {"do": "create", "id": new, "geometry": box(1, 1, 9, 9), "name": "copy"},
    )
    assert answer.status_code == 200, answer.json()
    body = answer.json()["rois"]
    assert [row["version"] for row in body] == [2, 2, 2, 1]
    assert (body[0]["label"], body[0]["locked"]) == (str(label.pk), True)
    assert body[1]["bounds"] == [300, 300, 340, 320]
    assert (body[1]["area_px"], body[1]["centroid"]) == (800, [320, 310])
    assert body[2]["deleted_at"] is not None
    assert (body[3]["id"], body[3]["name"]) == (new, "copy")
    revisions = RoiRevision.objects.exclude(roi__in=rois, version=1)
    actions = revisions.order_by("roi__created_at").values_list("action", "version", "author")
    user = annotator.pk
    assert list(actions) == [
        *[("update", 2, user)] * 2,
        ("delete", 2, user),
        ("create", 1, user),
    ]
    assert names(name="roi.deleted", payload__roi_id=str(rois[2].pk)) == ["roi.deleted"]
    assert len(names(name="roi.saved")) == 3 + 3  # drawn; two changed and one made


def test_a_deleted_one_is_restored_by_a_second_call(
    api: APIClient, canvas: Canvas, rois: list[Roi]
) -> None:
    send(api, canvas, *[step("delete", roi) for roi in rois])
    assert not Roi.objects.live().exists()
    assert send(api, canvas, *[step("restore", roi, 2) for roi in rois]).status_code == 200
    assert set(Roi.objects.live().values_list("version", flat=True)) == {3}


def test_one_stale_version_refuses_the_batch_and_returns_the_current_versions(
    api: APIClient, canvas: Canvas, rois: list[Roi], annotator: User
) -> None:
    roi_update(roi=rois[1], user=annotator, expected_version=1, changes={"name": "theirs"})
    answer = send(api, canvas, *[step("update", roi, name="mine") for roi in rois])
    assert (answer.status_code, answer.json()["code"]) == (412, "stale-version")
    (stale,) = answer.json()["stale"]
    assert (stale["id"], stale["name"], stale["version"]) == (str(rois[1].pk), "theirs", 2)
    assert not Roi.objects.filter(name="mine").exists()


def test_a_repeated_request_gets_the_first_answer(
    api: APIClient, canvas: Canvas, rois: list[Roi]
) -> None:
    new = {"do": "create", "id": str(uuid.uuid4()), "geometry": box(1, 1, 9, 9)}
    changes = [step("delete", rois[0]), step("update", rois[1], name="once"), new]
    first, second = (send(api, canvas, *changes).json() for _ in range(2))
    assert first == second
    assert RoiRevision.objects.count() == 3 + 3


def test_under_its_key_it_is_carried_out_once_whatever_others_changed_since(
    api: APIClient, canvas: Canvas, rois: list[Roi], reviewer: User
) -> None:
    new = {"do": "create", "id": str(uuid.uuid4()), "geometry": box(1, 1, 9, 9)}
    changes = [step("delete", rois[0]), step("update", rois[1], name="mine"), new]
    first = send(api, canvas, *changes, key="all-of-these")
    assert first.status_code == 200, first.json()
    roi_restore(roi=Roi.all_objects.get(pk=rois[0].pk), user=reviewer, expected_version=2)
    for pk, version in ((rois[1].pk, 2), (new["id"], 1)):
        theirs = {"name": "theirs"}
        roi = Roi.objects.get(pk=pk)
        roi_update(roi=roi, user=reviewer, expected_version=version, changes=theirs)
    again = send(api, canvas, *changes, key="all-of-these")
    assert again.status_code == 200, again.json()
    rows = [(row["id"], row["version"], row["name"]) for row in again.json()["rois"]]
    ids = [str(rois[0].pk), str(rois[1].pk), new["id"]]
    assert rows == list(zip(ids, (2, 2, 1), ("", "mine", ""), strict=True))
    assert RoiRevision.objects.count() == 3 + 3 + 3
    assert send(api, canvas, *changes, key="another-key").status_code == 412


def test_the_same_new_ones_sent_twice_at_once_are_made_once(
    api: APIClient, canvas: Canvas, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = {"do": "create", "id": str(uuid.uuid4()), "geometry": box(1, 1, 9, 9)}
    locked_rows = bulk._locked_rows

    def other_is_quicker(*seen: Any) -> dict[uuid.UUID, Roi]:
        locks = locked_rows(*seen)
        monkeypatch.setattr(bulk, "_locked_rows", locked_rows)
        assert send(api, canvas, new, key="all-of-these").status_code == 200
        return locks

    monkeypatch.setattr(bulk, "_locked_rows", other_is_quicker)
    answer = send(api, canvas, new, key="all-of-these")
    assert (answer.status_code, RoiRevision.objects.count()) == (200, 1), answer.json()


def test_a_locked_roi_refuses_the_batch(api: APIClient, canvas: Canvas, rois: list[Roi]) -> None:
    send(api, canvas, step("update", rois[0], locked=True))
    answer = send(api, canvas, step("delete", rois[0], 2), step("delete", rois[1]))
    assert (answer.status_code, answer.json()["code"]) == (409, "roi-locked")
    assert Roi.objects.live().count() == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"do": "create"}, "Required to create"),
        ({"do": "delete"}, "Required to delete"),
        ({"do": "sink", "version": 1}, "not a valid choice"),
        ({"do": "create", "geometry": {"type": "Circle", "coordinates": [1, 2]}}, "not 'Circle'"),
        (
            {"do": "create", "geometry": box(1, 1, 9, 9), "label": str(uuid.uuid4())},
            "no such label",
        ),
    ],
)
def test_errors_name_the_invalid_field(
    api: APIClient, canvas: Canvas, change: dict[str, Any], words: str
) -> None:
    answer = send(api, canvas, {"id": str(uuid.uuid4()), **change})
    assert answer.status_code == 400
    assert words in str(answer.json())


def test_an_roi_twice_or_none_at_all_is_refused(
    api: APIClient, canvas: Canvas, rois: list[Roi]
) -> None:
    assert "twice" in send(api, canvas, *[step("delete", rois[0])] * 2).json()["detail"]
    assert "from 1 to 10,000" in send(api, canvas).json()["detail"]


def test_rois_of_another_lab_or_canvas_are_not_found(
    api: APIClient, canvas: Canvas, rois: list[Roi], foreign_roi: Roi, foreign_canvas: Canvas
) -> None:
    assert send(api, canvas, step("delete", foreign_roi)).status_code == 404
    assert send(api, foreign_canvas, step("delete", foreign_roi)).status_code == 404
    mixed = send(api, canvas, step("delete", rois[0]), step("delete", foreign_roi))
    assert mixed.status_code == 404
    taken = {"do": "create", "id": str(foreign_roi.pk), "geometry": box(1, 1, 9, 9)}
    answer = send(api, canvas, taken)
    assert (answer.status_code, answer.json()["code"]) == (409, "id-taken")
    assert Roi.objects.live().count() == 4


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["redraw", "delete", "restore"])
def test_the_query_count_is_independent_of_the_batch_size(
    api: APIClient, canvas: Canvas, annotator: User, operation: str
) -> None:
    price = []
    for count, top in ((30, 10), (60, 100)):
        rois = [
            roi_create(canvas=canvas, user=annotator, geometry=box(x, top, x + 5, top + 9)).roi
            for x in range(0, count * 10, 10)
        ]
        send(api, canvas, *[step("delete", roi) for roi in rois if operation == "restore"])
        params = {
            "redraw": [step("update", roi, geometry=box(1, 1, 9, 9)) for roi in rois],
            "delete": [step("delete", roi) for roi in rois],
            "restore": [step("restore", roi, 2) for roi in rois],
        }
        with CaptureQueriesContext(connection) as queries:
            assert send(api, canvas, *params[operation]).status_code == 200
        price.append(len(queries))
    assert price[1] <= price[0]


def test_many_different_changes_are_each_stored(
    api: APIClient, canvas: Canvas, annotator: User
) -> None:
    rois = [
        roi_create(canvas=canvas, user=annotator, geometry=box(x, 10, x + 5, 60)).roi
        for x in range(0, 120, 10)
    ]
    answer = send(api, canvas, *[step("update", roi, name=f"n{roi.left:g}") for roi in rois])
    assert [row["name"] for row in answer.json()["rois"]] == [f"n{x}" for x in range(0, 120, 10)]
    assert set(Roi.objects.values_list("version", flat=True)) == {2}


def test_rows_are_locked_in_the_order_of_their_ids(
    api: APIClient, canvas: Canvas, rois: list[Roi], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 1)  # beyond a chunk too
    rois.sort(key=lambda roi: roi.pk, reverse=True)
    with CaptureQueriesContext(connection) as queries:
        assert (
            send(api, canvas, *[step("update", roi, name="x") for roi in rois]).status_code == 200
        )
    locking = [
        query["sql"] for query in queries if 'ORDER BY "annotations_roi"."id"' in query["sql"]
    ]
    locked = [roi for sql in locking[:3] for roi in rois if roi.pk.hex in sql.replace("-", "")]
    assert locked == rois[::-1]

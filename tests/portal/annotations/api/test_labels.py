"""Labels over REST."""

from __future__ import annotations

from typing import Any

from portal.annotations.models import Label
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas
from portal.labs.models import User
from tests.portal.annotations.support import LABELS, box


def test_labels_over_rest(api_as: Any, manager: User, reviewer: User, canvas: Canvas) -> None:
    client = api_as(manager)
    assert len(client.get(LABELS).json()["results"]) == 8
    made = client.post(LABELS, {"name": "Gland", "color": "#112233"})
    assert made.status_code == 201
    path = f"{LABELS}{made.json()['id']}/"
    assert api_as(reviewer).patch(path, {"name": "x"}, headers={"If-Match": "*"}).status_code == 403
    assert (
        client.patch(path, {"color": "#445566"}, headers={"If-Match": "*"}).json()["color"]
        == "#445566"
    )
    assert client.get(path).json()["name"] == "Gland"
    assert client.post(LABELS, {"name": "gland"}).status_code == 409
    assert client.post(LABELS, {"name": "y", "color": "blue"}).status_code == 400
    rows = client.get(LABELS, {"canvas": str(canvas.pk)}).json()["results"]
    assert rows[-1]["name"] == "Gland"
    assert client.delete(path).status_code == 204


def test_a_label_in_use_is_a_conflict(
    api_as: Any, manager: User, canvas: Canvas, label: Label
) -> None:
    roi_create(canvas=canvas, user=manager, geometry=box(1, 1, 9, 9), label=label)
    answer = api_as(manager).delete(f"{LABELS}{label.pk}/")
    assert (answer.status_code, answer.json()["in_use"]) == (409, 1)

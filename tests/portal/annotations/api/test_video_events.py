"""Events of a video over REST."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.annotations.models import VideoEvent
from portal.archive.models import Canvas

pytestmark = pytest.mark.django_db
URL = "/api/v1/video-events/"


@pytest.fixture
def made(api: APIClient, video_canvas: Canvas) -> dict[str, Any]:
    body = {"canvas": str(video_canvas.pk), "name": "Withdrawal", "first_index": 1, "last_index": 3}
    answer = api.post(URL, body, format="json")
    assert (answer.status_code, answer["ETag"]) == (201, '"1"'), answer.content
    result: dict[str, Any] = answer.json()
    return result


def test_an_event_is_listed_with_the_times_of_its_frames(
    api: APIClient, made: dict[str, Any]
) -> None:
    (event,) = api.get(URL, {"canvas": made["canvas"]}).json()["results"]
    assert event == made
    assert event["first"] == {"index": 1, "pts": 40, "time_s": 0.04}
    assert event["last"] == {"index": 3, "pts": 200, "time_s": 0.2}
    assert api.get(URL, {"canvas": made["canvas"], "frame": 0}).json()["results"] == []
    assert api.get(URL, {"canvas": str(uuid.uuid4())}).status_code == 404


def test_a_change_needs_the_version_it_was_made_from(api: APIClient, made: dict[str, Any]) -> None:
    url = f"{URL}{made['id']}/"
    assert api.patch(url, {"name": "x"}, format="json").status_code == 428
    tag = {"If-Match": '"1"'}
    assert api.patch(url, {"first_index": 2}, format="json", headers=tag).json()["version"] == 2
    stale = api.patch(url, {"name": "x"}, format="json", headers=tag)
    assert (stale.status_code, stale.json()["current_version"]) == (412, 2)
    assert stale.json()["current"]["first"]["index"] == 2


def test_a_deleted_event_comes_back(api: APIClient, made: dict[str, Any]) -> None:
    url = f"{URL}{made['id']}/"
    assert api.delete(url, headers={"If-Match": '"1"'}).status_code == 204
    assert api.get(URL, {"canvas": made["canvas"]}).json()["results"] == []
    assert len(api.get(URL, {"canvas": made["canvas"], "deleted": "1"}).json()["results"]) == 1
    assert api.post(f"{url}restore/").json()["deleted_at"] is None
    actions = [row["action"] for row in api.get(f"{url}revisions/").json()["results"]]
    assert actions == ["create", "delete", "restore"]


def test_the_same_request_again_creates_nothing(api: APIClient, video_canvas: Canvas) -> None:
    body = {"id": str(uuid.uuid4()), "canvas": str(video_canvas.pk), "name": "a", "first_index": 0}
    codes = [api.post(URL, body, format="json").status_code for _ in range(2)]
    assert (codes, VideoEvent.objects.count()) == ([201, 200], 1)


def test_names_are_suggested(api: APIClient, made: dict[str, Any]) -> None:
    names = api.get(f"{URL}names/", {"canvas": made["canvas"]}).json()["names"]
    assert names[0] == "Withdrawal"
    assert "Caecum" in names

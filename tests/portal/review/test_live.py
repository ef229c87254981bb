"""Others on the same canvas: their changes, their presence, and who may know of them."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_create, roi_delete
from portal.annotations.services.video_events import (
    video_event_create,
    video_event_delete,
    video_event_restore,
    video_event_update,
)
from portal.archive.models import Canvas
from portal.archive.services.sharing import share_accept, share_offer
from portal.core.errors import ForbiddenError
from portal.labs.models import Lab, User
from portal.labs.session_life import SEEN
from portal.review.api.live_answers import RENEWED_S
from portal.review.models import CanvasPresence
from portal.review.selectors.live import AWAY_S, MAX_CHANGES, canvas_now, initials_of
from portal.review.services.presence import presence_end, presence_note
from tests.portal.annotations.conftest import make_video_canvas
from tests.portal.annotations.support import box

TAB = uuid.uuid4()


def now_of(user: User, canvas: Canvas, *, ago_s: float = 0) -> Any:
    since = timezone.now() - timedelta(seconds=ago_s)
    return canvas_now(user, canvas, since=since, tab=None)


def test_changes_of_others_are_listed_by_version(
    canvas: Canvas, roi: Roi, annotator: User, reviewer: User
) -> None:
    (result,) = now_of(reviewer, canvas).changed
    assert (result.id, result.version, result.is_deleted) == (roi.pk, 2, False)
    roi_delete(roi=roi, user=annotator, expected_version=2)
    (result,) = now_of(reviewer, canvas).changed
    assert (result.version, result.is_deleted) == (3, True)


def test_each_write_of_an_event_changes_the_number_of_the_video_and_no_other(
    lab: Lab, annotator: User, reviewer: User
) -> None:
    video, other = (
        make_video_canvas(lab, pts=[0, 40, 80]),
        make_video_canvas(lab, pts=[0, 40, 80]),
    )
    numbers = [now_of(reviewer, video).video_events]
    event = video_event_create(canvas=video, user=annotator, name="Polyp", first_index=1).event
    numbers.append(now_of(reviewer, video).video_events)
    video_event_update(event=event, user=annotator, expected_version=1, changes={"name": "Fold"})
    numbers.append(now_of(reviewer, video).video_events)
    video_event_delete(event=event, user=annotator, expected_version=2)
    numbers.append(now_of(reviewer, video).video_events)
    video_event_restore(event=event, user=annotator)
    numbers.append(now_of(reviewer, video).video_events)
    assert len(set(numbers)) == 5
    assert now_of(reviewer, other).video_events == 0


def test_old_changes_are_omitted_and_late_commits_included(
    canvas: Canvas, roi: Roi, reviewer: User
) -> None:
    stamp = timezone.now() - timedelta(seconds=10)  # before the cursor, by less than a write takes
    Roi.objects.filter(pk=roi.pk).update(updated_at=stamp)
    assert len(now_of(reviewer, canvas).changed) == 1
    Roi.objects.filter(pk=roi.pk).update(updated_at=stamp - timedelta(seconds=60))
    assert now_of(reviewer, canvas).changed == ()


def test_without_changes_the_etag_is_stable_until_the_cursor_expires(
    api_as: Any, canvas: Canvas, roi: Roi, reviewer: User
) -> None:
    def poll(*, ago_s: float, etag: str = "") -> Any:
        since = timezone.now() - timedelta(seconds=ago_s)
        url, result = f"/api/v1/canvases/{canvas.pk}/live/", {"If-None-Match": etag}
        return api_as(reviewer).get(url, {"since": since.isoformat()}, headers=result)

    Roi.objects.filter(pk=roi.pk).update(updated_at=timezone.now())  # however long it took so far
    first = poll(ago_s=1)
    assert poll(ago_s=1, etag=first["ETag"]).status_code == 304
    renewed = poll(ago_s=RENEWED_S + 1, etag=first["ETag"])
    assert (renewed.status_code, renewed.json()["cursor"] > first.json()["cursor"]) == (200, True)
    presence_note(canvas=canvas, user=roi.created_by, tab=TAB)
    assert poll(ago_s=1, etag=first["ETag"]).status_code == 200


def test_a_change_brings_its_roi_and_a_large_or_older_one_does_not(
    api_as: Any, canvas: Canvas, roi: Roi, reviewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, url = api_as(reviewer), f"/api/v1/canvases/{canvas.pk}/live/"
    long_ago = {"since": (timezone.now() - timedelta(seconds=9)).isoformat()}
    (reported,) = client.get(url, long_ago).json()["changed"]
    body = client.get("/api/v1/rois/", {"canvas": str(canvas.pk), "ids": str(roi.pk)}).json()
    assert reported == {
        "id": str(roi.pk),
        "version": 2,
        "is_deleted": False,
        "roi": body["results"][0],
    }
    later = {"since": (timezone.now() + timedelta(seconds=9)).isoformat()}
    assert client.get(url, later).json()["changed"][0]["roi"] is None
    monkeypatch.setattr("portal.review.api.live_answers.MAX_ROI_CHARS", 9)
    assert client.get(url, long_ago).json()["changed"][0]["roi"] is None


def test_too_many_changes_are_not_listed(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.review.selectors.live.MAX_CHANGES", 2)
    for left in range(3):
        roi_create(canvas=canvas, user=annotator, geometry=box(left, 1, left + 9, 9))
    now = now_of(annotator, canvas)
    assert (len(now.changed), now.has_more) == (2, True)
    assert MAX_CHANGES > 200


def test_people_are_here_until_they_leave_or_fall_silent(
    canvas: Canvas, annotator: User, reviewer: User
) -> None:
    roi_id = uuid.uuid4()
    presence_note(canvas=canvas, user=annotator, tab=TAB, view=[0, 0, 9, 9], roi_id=roi_id)
    presence_note(canvas=canvas, user=annotator, tab=TAB, view=[0, 0, 8, 8], roi_id=roi_id)
    (person,) = now_of(reviewer, canvas).people
    assert (person.name, person.view, person.roi) == (str(annotator), (0, 0, 8, 8), roi_id)
    CanvasPresence.objects.update(seen_at=timezone.now() - timedelta(seconds=AWAY_S + 1))
    assert now_of(reviewer, canvas).people == ()
    presence_note(canvas=canvas, user=annotator, tab=TAB)
    presence_end(canvas=canvas, user=annotator, tab=TAB)
    assert now_of(reviewer, canvas).people == ()


def test_a_page_does_not_meet_itself_but_another_of_the_same_person(
    canvas: Canvas, annotator: User
) -> None:
    presence_note(canvas=canvas, user=annotator, tab=TAB)
    since = timezone.now()
    assert canvas_now(annotator, canvas, since=since, tab=TAB).people == ()
    assert len(canvas_now(annotator, canvas, since=since, tab=uuid.uuid4()).people) == 1


def test_guests_see_changes_but_no_people_and_are_not_listed(
    lab: Lab, other_lab: Lab, canvas: Canvas, roi: Roi, manager: User, stranger: User
) -> None:
    until = timezone.localdate() + timedelta(days=9)
    share = share_offer(case=canvas.case, with_lab=other_lab.slug, until=until, user=manager)
    share_accept(share=share, user=stranger)
    presence_note(canvas=canvas, user=manager, tab=TAB)
    with pytest.raises(ForbiddenError):
        presence_note(canvas=canvas, user=stranger, tab=TAB)
    assert now_of(stranger, canvas).people == ()
    assert [item.id for item in now_of(stranger, canvas).changed] == [roi.pk]


def test_rest_answers_304_without_changes_in_few_queries(
    api_as: Any,
    canvas: Canvas,
    roi: Roi,
    annotator: User,
    reviewer: User,
    django_assert_max_num_queries: Any,
) -> None:
    url = f"/api/v1/canvases/{canvas.pk}/live/"
    assert api_as(annotator).put(url, {"tab": str(TAB)}, format="json").status_code == 204
    client = api_as(reviewer)
    first = client.get(url)
    body = first.json()
    assert [item["version"] for item in body["changed"]] == [2]
    assert [person["name"] for person in body["people"]] == [str(annotator)]
    params = {"since": body["cursor"]}
    with django_assert_max_num_queries(5):  # the canvas, changes, their ROIs, people
        again = client.get(url, params, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    response = client.get("/api/v1/rois/", {"canvas": str(canvas.pk), "ids": str(roi.pk)})
    assert response.json()["results"][0]["version"] == 2
    assert client.get("/api/v1/rois/", {"ids": "x"}).status_code == 400
    assert client.put(url, {"tab": str(TAB), "view": [1, 2]}, format="json").status_code == 400
    api_as(annotator).delete(url, {"tab": str(TAB)}, format="json")
    assert client.get(url).json()["people"] == []


def test_an_open_page_does_not_prolong_a_session(
    client: Client, canvas: Canvas, viewer: User
) -> None:
    client.force_login(viewer)
    session = client.session
    session[SEEN] = long_ago = timezone.now().timestamp() - settings.TESSERA_SESSION_IDLE_S / 2
    session.save()
    url = f"/api/v1/canvases/{canvas.pk}/live/"
    assert client.get(url, headers={"X-Unattended": "1"}).status_code == 200
    assert client.session[SEEN] == long_ago
    client.get(url)
    assert client.session[SEEN] > long_ago


@pytest.mark.parametrize(
    ("name", "initials"),
    [
        ("Dr Paula Weiss", "PW"),
        ("Maya Lind, lab manager", "ML"),
        ("plato", "P"),
        ("ann.smith@north.example", "AS"),
        ("", "?"),
    ],
)
def test_initials_are_those_of_the_name(name: str, initials: str) -> None:
    assert initials_of(name) == initials

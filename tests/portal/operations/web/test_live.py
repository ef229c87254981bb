"""Others' edits: which questions are answered before Django, and which are left to it."""

from __future__ import annotations

import asyncio
import json
import queue
import uuid
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import urlencode

import pytest
from django.utils import timezone

from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_create, roi_delete
from portal.annotations.services.video_events import video_event_create
from portal.archive.models import Canvas
from portal.archive.services.sharing import share_accept, share_offer
from portal.labs.models import Lab, Membership, User
from portal.operations.web import live
from portal.operations.web.live import LiveAnswers, live_question
from portal.reader_studies.models import Assignment
from portal.review.api import live_updates
from portal.review.api.live_answers import RENEWED_S
from portal.review.services.presence import presence_note
from tests.clients import client_of
from tests.portal.annotations.conftest import make_video_canvas
from tests.portal.annotations.support import box

Exchange = Callable[..., tuple[int, Any, str]]


def cookie_of(user: User) -> str:
    client = client_of(user)
    return f"sessionid={client.cookies['sessionid'].value}"


def scope_of(
    canvas: Canvas, since: datetime, tab: uuid.UUID, *more: tuple[str, str]
) -> dict[str, Any]:
    """A page's question as ASGI has it."""
    query = urlencode({"tab": str(tab), "since": since.isoformat()})
    fields = [("host", "t"), ("x-unattended", "1"), *more]
    return {
        "method": "GET",
        "path": f"/api/v1/canvases/{canvas.pk}/live/",
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in fields],
    }


class Here:
    """An event loop elsewhere, whose calls to threads come to this one: it has the transaction."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    async def in_thread(self, call: Callable[..., Any], *args: Any) -> Any:
        done: Future[Any] = Future()
        self._calls.put(lambda: done.set_result(call(*args)))
        return await asyncio.wrap_future(done)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        with ThreadPoolExecutor(1) as loop:
            task = loop.submit(asyncio.run, work)
            task.add_done_callback(lambda _: self._calls.put(None))
            while (call := self._calls.get()) is not None:
                call()
        return task.result()


@pytest.fixture
def exchange(canvas: Canvas, monkeypatch: pytest.MonkeyPatch) -> Exchange:
    """One page's question, answered by a new reading each time; 0: left to Django."""
    monkeypatch.setattr(live, "FRESH_S", -1.0)
    monkeypatch.setattr(live, "CLOSED_S", -1.0)
    here = Here()
    answers = cache(lambda: LiveAnswers(here.in_thread))

    def request(
        cookie: str, *, ago_s: float = 1, tab: uuid.UUID | None = None, etag: str = ""
    ) -> tuple[int, Any, str]:
        since = timezone.now() - timedelta(seconds=ago_s)
        fields = [("cookie", cookie), ("if-none-match", etag)]
        question = live_question(scope_of(canvas, since, tab or uuid.uuid4(), *fields))
        assert question is not None
        answer = here.run(answers().answer(question))
        if answer is None:
            return 0, None, ""
        status, headers, body = answer
        return status, json.loads(body) if body else None, dict(headers)[b"etag"].decode()

    return request


def draw(canvas: Canvas, user: User, left: float = 10) -> Roi:
    return roi_create(canvas=canvas, user=user, geometry=box(left, 10, left + 90, 60)).roi


def test_the_stream_equals_the_api(
    exchange: Exchange, api_as: Any, canvas: Canvas, annotator: User, reviewer: User
) -> None:
    mine, deleted = draw(canvas, annotator), draw(canvas, annotator, 300)
    roi_delete(roi=deleted, user=annotator, expected_version=1)
    soon = timezone.now() + timedelta(seconds=5)  # within the window of all requests below
    Roi.objects.filter(canvas=canvas).update(updated_at=soon)
    tab, other = uuid.uuid4(), uuid.uuid4()
    presence_note(canvas=canvas, user=annotator, tab=other, view=[0, 0, 9, 9], roi_id=mine.pk)
    presence_note(canvas=canvas, user=reviewer, tab=tab)
    status, result, etag = exchange(cookie_of(reviewer), tab=tab)
    since = (timezone.now() - timedelta(seconds=1)).isoformat()
    url = f"/api/v1/canvases/{canvas.pk}/live/"
    by_api = api_as(reviewer).get(url, {"tab": str(tab), "since": since}).json()
    assert status == 200 and result["cursor"] and by_api.pop("cursor") and result.pop("cursor")
    for answer in result, by_api:
        answer["changed"].sort(key=lambda item: str(item["id"]))
    assert result == by_api
    assert [item["name"] for item in result["people"]] == [str(annotator)]
    assert {item["roi"]["version"] for item in result["changed"]} == {1, 2}
    assert exchange(cookie_of(reviewer), tab=tab, etag=etag)[0] == 304
    assert exchange(cookie_of(reviewer), tab=tab, etag=etag, ago_s=RENEWED_S + 1)[0] == 200


def test_the_stream_and_the_api_count_writes_of_events(
    api_as: Any, lab: Lab, annotator: User, reviewer: User
) -> None:
    video = make_video_canvas(lab, pts=[0, 40, 80])
    updates = live_updates.LiveUpdates(video.pk)
    for name in ("Polyp", "Fold"):
        video_event_create(canvas=video, user=annotator, name=name, first_index=1)
        updates.look()
        answer = updates.answer(since=timezone.now(), user_id=reviewer.pk, tab=None)
        data = json.loads(str(answer.text))["video_events"]
        assert (
            data
            == api_as(reviewer).get(f"/api/v1/canvases/{video.pk}/live/").json()["video_events"]
        )
    assert data == 2


def test_fifty_pages_are_notified_of_an_edit_by_one_query(
    exchange: Exchange,
    canvas: Canvas,
    annotator: User,
    reviewer: User,
    monkeypatch: pytest.MonkeyPatch,
    django_assert_max_num_queries: Any,
) -> None:
    monkeypatch.setattr(live, "FRESH_S", 60.0)
    cookie = cookie_of(reviewer)
    roi = draw(canvas, annotator)
    # Canvas, people, changes, their ROIs, which are embedded, blindness; then who asks: three.
    with django_assert_max_num_queries(9):
        bodies = [exchange(cookie)[1] for _ in range(50)]
    assert all(item["changed"][0]["roi"]["id"] == str(roi.pk) for item in bodies)


def test_a_change_is_sent_once_and_slow_clients_poll_the_api(
    exchange: Exchange,
    canvas: Canvas,
    annotator: User,
    reviewer: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cookie = cookie_of(reviewer)
    draw(canvas, annotator)
    assert len(exchange(cookie)[1]["changed"]) == 1
    assert exchange(cookie, ago_s=-9)[1]["changed"] == []  # a cursor of after it
    assert exchange(cookie, ago_s=live_updates.KEEP_S + 1)[0] == 0
    monkeypatch.setattr(live_updates, "KEEP_S", 0.0)  # sent updates are dropped
    assert exchange(cookie)[0] == 0


def test_a_flood_of_changes_sends_few_reloads(
    exchange: Exchange,
    canvas: Canvas,
    annotator: User,
    reviewer: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cookie = cookie_of(reviewer)
    assert exchange(cookie)[1]["has_more"] is False
    monkeypatch.setattr(live_updates, "MAX_CHANGES", 1)
    draw(canvas, annotator), draw(canvas, annotator, 300)
    body = exchange(cookie)[1]
    assert (body["has_more"], body["changed"]) == (True, [])
    draw(canvas, annotator, 500)
    assert exchange(cookie, ago_s=-9)[1]["has_more"] is False  # it was sent a moment ago
    monkeypatch.setattr(live_updates, "RELOAD_EVERY_S", 0.0)
    assert exchange(cookie)[1]["has_more"] is True


def test_only_members_of_the_lab_are_answered_here(
    exchange: Exchange, canvas: Canvas, manager: User, viewer: User, stranger: User, other_lab: Lab
) -> None:
    until = timezone.localdate() + timedelta(days=9)
    share = share_offer(case=canvas.case, with_lab=other_lab.slug, until=until, user=manager)
    share_accept(share=share, user=stranger)  # a guest, who sees nobody
    cookies = cookie_of(viewer), cookie_of(stranger), "sessionid=invented"
    assert [exchange(cookie)[0] for cookie in cookies] == [200, 0, 0]


def test_a_former_member_is_shut_out_at_the_next_recheck(
    exchange: Exchange, canvas: Canvas, viewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "RECHECK_S", -1.0)
    cookie = cookie_of(viewer)
    assert exchange(cookie)[0] == 200
    Membership.objects.filter(user=viewer).delete()
    assert exchange(cookie)[0] == 0


def test_blind_readings_are_not_streamed(
    exchange: Exchange, lab: Lab, canvas: Canvas, annotator: User, reviewer: User, manager: User
) -> None:
    cookie = cookie_of(reviewer)
    assert exchange(cookie)[0] == 200
    reading = Assignment.objects.create(
        lab=lab, canvas=canvas, person=annotator, is_blind=True, assigned_by=manager
    )
    draw(canvas, annotator)
    assert [exchange(cookie)[0], exchange(cookie_of(annotator))[0]] == [0, 0]
    reading.delete()
    assert exchange(cookie)[0] == 200


@pytest.mark.parametrize(
    "field",
    [("authorization", "Bearer x"), ("x-unattended", ""), ("cookie", "")],
)
def test_other_addresses_are_answered_by_the_api(field: tuple[str, str]) -> None:
    canvas, now = Canvas(pk=uuid.uuid4()), timezone.now()
    given = dict([("cookie", "sessionid=x"), field]).items()
    assert live_question(scope_of(canvas, now, uuid.uuid4(), *given)) is None
    scope = scope_of(canvas, now, uuid.uuid4(), ("cookie", "sessionid=x"))
    assert live_question(scope) is not None
    for query in (b"since=x", b"", b"tab=&since=2026-01-01T00:00:00Z"):
        assert live_question(scope | {"query_string": query}) is None

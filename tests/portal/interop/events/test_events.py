"""Server-sent events: ordered, once each, resumable, and limited to visible objects."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from portal.annotations.services.rois import roi_create
from portal.core.events import event_emit
from portal.core.models import Event
from portal.interop.events import selectors as events
from portal.labs.models import ApiToken, Lab, Membership, Role, TokenScope, User
from portal.labs.session_life import session_is_over
from portal.reader_studies.services.assignments import ReadingPlan
from portal.reader_studies.services.studies import readings_assign, study_create
from tests.clients import client_of
from tests.portal.interop.conftest import Lab1

PATH = "/api/v1/events/"
RING = {"type": "Polygon", "coordinates": [[[1, 1], [90, 1], [90, 90], [1, 1]]]}


def _read(
    client: Client, after: int | None, query: str = ""
) -> tuple[list[dict[str, Any]], int, int]:
    """Read the events, the id to resume from, and the retry pause in ms."""
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    answer = client.get(f"{PATH}{query}", headers=headers | {"Accept": "text/event-stream"})
    assert answer.status_code == 200, answer.content
    assert answer["Content-Type"].startswith("text/event-stream")
    *blocks, end = answer.content.decode().removesuffix("\n\n").split("\n\n")
    messages = []
    for block in blocks:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        body = json.loads(fields["data"])
        assert fields["event"] == body["type"]
        messages.append({"at": int(fields["id"]), "type": body["type"], **body["data"]})
    last = dict(line.split(": ", 1) for line in end.split("\n"))
    return messages, int(last["id"]), int(last["retry"])


def _drawn(held: Lab1) -> str:
    roi = roi_create(canvas=held.world.canvas, user=held.manager, geometry=RING).roi
    return str(roi.pk)


def test_a_subscription_without_a_cursor_starts_now_and_resumes(held: Lab1) -> None:
    result, start, retry = _read(held.client(), None)
    assert result == [] and retry == 2000
    roi = _drawn(held)
    result, after, _ = _read(held.client(), start)
    saved = [item for item in result if item["type"] == "roi.saved"]
    assert [row["id"] for row in saved] == [roi] and saved[0]["object"] == "roi"
    assert saved[0]["case"] == str(held.world.case.pk)
    assert _read(held.client(), after)[0] == []
    assert _read(held.client(), start)[0] == result


@pytest.fixture(autouse=True)
def _no_holes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for gaps in the ids, which rolled-back tests leave on PostgreSQL."""
    monkeypatch.setattr(events, "HOLE_S", 0.0)


def test_no_hole_is_passed_while_it_may_be_filled(
    held: Lab1, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HOLE_S", 15.0)
    monkeypatch.setattr(events, "_is_being_written", lambda: True)
    _, start, _ = _read(held.client(), None)
    first, hole, third = start + 1, start + 2, start + 3
    payload = {"roi_id": str(held.world.roi.pk), "canvas_id": str(held.world.canvas.pk)}
    for pk in (first, third):
        Event.objects.create(pk=pk, name="roi.saved", lab_id=held.lab.pk, payload=payload)
    result, after, _ = _read(held.client(), start)
    assert ([item["at"] for item in result], after) == ([first], first)
    Event.objects.create(pk=hole, name="roi.saved", lab_id=held.lab.pk, payload=payload)
    assert _read(held.client(), after)[1] == third
    late = timezone.now() - timedelta(seconds=events.HOLE_S + 1)
    Event.objects.filter(pk=hole).delete()
    Event.objects.filter(pk=third).update(created_at=late)
    assert _read(held.client(), after)[1] == third


def test_a_permanent_gap_delays_no_event(held: Lab1, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HOLE_S", 15.0)
    _, start, _ = _read(held.client(), None)
    payload = {"roi_id": str(held.world.roi.pk), "canvas_id": str(held.world.canvas.pk)}
    Event.objects.create(pk=start + 2, name="roi.saved", lab_id=held.lab.pk, payload=payload)
    monkeypatch.setattr(events, "_is_being_written", lambda: True)
    assert _read(held.client(), start)[1] == start
    late = {"pk": start + 3, "name": "roi.saved", "lab_id": held.lab.pk, "payload": payload}

    def ended() -> bool:
        """Whoever held the lower id commits; another one takes a higher one and goes on."""
        if not Event.objects.filter(pk=start + 1).exists():
            Event.objects.create(**(late | {"pk": start + 1}))
            Event.objects.create(**(late | {"pk": start + 5}))
        return False

    monkeypatch.setattr(events, "_is_being_written", ended)
    result, after, _ = _read(held.client(), start)
    assert [item["at"] for item in result] == [start + 1, start + 2]
    assert after == start + 2  # of the later hole nothing is known yet


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="asks PostgreSQL for its locks")
def test_a_rolled_back_event_delays_no_reader() -> None:
    lab = Lab.objects.create(name="Events", slug="events")
    user = User.objects.create_user("events@interop.example", "correct horse battery")
    Membership.objects.create(user=user, lab=lab, role=Role.MANAGER)
    start = events.event_latest()
    started, end = threading.Event(), threading.Event()

    def writes() -> None:
        try:
            with transaction.atomic():
                event_emit("tests.happened", lab_id=lab.pk, payload={})
                started.set()
                end.wait(30)
                transaction.set_rollback(True)
        finally:
            connection.close()

    other = threading.Thread(target=writes)
    other.start()
    started.wait(30)
    mine = event_emit("tests.happened", lab_id=lab.pk, payload={})
    plan = events.EventFilter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(events, "HOLE_S", 15.0)
        assert events.event_stretch(user, start, plan).until < mine.pk  # it may be filled still
        end.set()
        other.join()
        assert events.event_stretch(user, start, plan).until == mine.pk


def test_a_large_batch_is_bounded_with_a_cursor(
    held: Lab1, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "AT_ONCE", 2)
    _, start, _ = _read(held.client(), None)
    for _ in range(3):
        _drawn(held)
    seen: list[int] = []
    after, retry = start, 50
    while retry == 50:
        result, after, retry = _read(held.client(), after)
        seen += [item["at"] for item in result if item["type"] == "roi.saved"]
    assert len(seen) == len(set(seen)) == 3


def test_types_and_canvas_are_chosen(held: Lab1) -> None:
    _, start, _ = _read(held.client(), None)
    _drawn(held)
    assert _read(held.client(), start, "?types=job.ended")[0] == []
    here = f"?types=roi.saved&canvas={held.world.canvas.pk}"
    assert len(_read(held.client(), start, here)[0]) == 1
    other = held.world.video.canvas_id
    assert _read(held.client(), start, f"?canvas={other}")[0] == []


@pytest.mark.parametrize(
    ("query", "after", "status"),
    [
        ("?types=assignment.made", "1", 400),
        ("", "x", 400),
        ("", "9" * 30, 400),
        ("", "0" * 20 + "9" * 10, 400),
        ("", "0" * 5000, 400),
        ("", "-1", 400),
        ("?canvas=00000000-0000-0000-0000-000000000000", "1", 404),
    ],
)
def test_invalid_requests_are_reported(held: Lab1, query: str, after: str, status: int) -> None:
    answer = held.client().get(f"{PATH}{query}", headers={"Last-Event-ID": after})
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")


def test_another_lab_receives_no_event(held: Lab1) -> None:
    other = User.objects.create_user("other@elsewhere.example", "correct horse battery")
    lab = Lab.objects.create(name="Elsewhere", slug="elsewhere")
    Membership.objects.create(user=other, lab=lab, role=Role.MANAGER)
    client = client_of(other)
    _, start, _ = _read(client, None)
    _drawn(held)
    result, after, _ = _read(client, start)
    assert result == [] and after > start


def test_a_token_hears_of_its_areas(held: Lab1) -> None:
    ApiToken.objects.filter(user=held.manager).update(areas={"cases": TokenScope.READ})
    _, start, _ = _read(held.client(), None)
    _drawn(held)
    assert [event for event in _read(held.client(), start)[0] if event["object"] == "roi"] == []


def test_events_of_blind_readings_are_hidden_both_ways(held: Lab1) -> None:
    reader, second = (
        User.objects.create_user(f"{name}@interop.example", "correct horse battery")
        for name in ("reader", "second")
    )
    for person in (reader, second):
        Membership.objects.create(user=person, lab=held.lab, role=Role.ANNOTATOR)
    study = study_create(lab=held.lab, user=held.manager, name="Blind")
    plan = ReadingPlan(canvases=[held.world.canvas], people=[reader, second])
    readings_assign(study=study, user=held.manager, plan=plan)
    _, start, _ = _read(held.client(), None)
    hidden = roi_create(canvas=held.world.canvas, user=reader, geometry=RING).roi
    others = _drawn(held)
    client = client_of(reader)
    assert str(hidden.pk) not in json.dumps(_read(held.client(), start)[0])
    assert others in json.dumps(_read(held.client(), start)[0])
    assert others not in json.dumps(_read(client, start)[0])


def test_listening_does_not_prolong_a_session(held: Lab1, settings: Any) -> None:
    client = client_of(held.manager)
    client.get("/api/v1/me/")
    before = dict(client.session)
    _read(client, None)
    assert dict(client.session) == before
    assert not session_is_over(client.session)


def test_more_events_need_no_more_queries(held: Lab1, django_assert_max_num_queries: Any) -> None:
    _, start, _ = _read(held.client(), None)
    for _ in range(4):
        _drawn(held)
    with django_assert_max_num_queries(8):
        assert len(_read(held.client(), start, "?types=roi.saved")[0]) == 4

"""Server-sent events: in order, once, from where one stands, and of what one may see."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from portal.annotations.services import roi_create
from portal.core.events import event_emit
from portal.core.models import Event
from portal.exchange.selectors import events
from portal.labs.models import ApiToken, Lab, Membership, Role, TokenScope, User
from portal.labs.session_life import session_is_over
from portal.reading.services import WantedReadings, readings_assign, study_create
from tests.portal.exchange.conftest import Lab1

PATH = "/api/v1/events/"
RING = {"type": "Polygon", "coordinates": [[[1, 1], [90, 1], [90, 90], [1, 1]]]}


def _read(
    client: Client, after: int | None, query: str = ""
) -> tuple[list[dict[str, Any]], int, int]:
    """What was told, the id to go on from, and the pause in ms."""
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    answer = client.get(f"{PATH}{query}", headers=headers | {"Accept": "text/event-stream"})
    assert answer.status_code == 200, answer.content
    assert answer["Content-Type"].startswith("text/event-stream")
    *blocks, end = answer.content.decode().removesuffix("\n\n").split("\n\n")
    told = []
    for block in blocks:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        said = json.loads(fields["data"])
        assert fields["event"] == said["type"]
        told.append({"at": int(fields["id"]), "type": said["type"], **said["data"]})
    last = dict(line.split(": ", 1) for line in end.split("\n"))
    return told, int(last["id"]), int(last["retry"])


def _drawn(held: Lab1) -> str:
    roi = roi_create(canvas=held.world.canvas, user=held.manager, geometry=RING).roi
    return str(roi.pk)


def test_one_begins_now_and_goes_on_from_there(held: Lab1) -> None:
    told, start, retry = _read(held.client(), None)
    assert told == [] and retry == 2000
    roi = _drawn(held)
    told, after, _ = _read(held.client(), start)
    saved = [one for one in told if one["type"] == "roi.saved"]
    assert [one["id"] for one in saved] == [roi] and saved[0]["object"] == "roi"
    assert saved[0]["case"] == str(held.world.case.pk)
    assert _read(held.client(), after)[0] == []
    assert _read(held.client(), start)[0] == told


@pytest.fixture(autouse=True)
def _no_holes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests rolled back left holes in the ids of PostgreSQL a moment ago."""
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
    told, after, _ = _read(held.client(), start)
    assert ([one["at"] for one in told], after) == ([first], first)
    Event.objects.create(pk=hole, name="roi.saved", lab_id=held.lab.pk, payload=payload)
    assert _read(held.client(), after)[1] == third
    late = timezone.now() - timedelta(seconds=events.HOLE_S + 1)
    Event.objects.filter(pk=hole).delete()
    Event.objects.filter(pk=third).update(created_at=late)
    assert _read(held.client(), after)[1] == third


def test_a_hole_that_nobody_can_fill_holds_nothing_up(
    held: Lab1, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    told, after, _ = _read(held.client(), start)
    assert [one["at"] for one in told] == [start + 1, start + 2]
    assert after == start + 2  # of the later hole nothing is known yet


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="asks PostgreSQL for its locks")
def test_an_event_that_was_rolled_back_makes_nobody_wait() -> None:
    lab = Lab.objects.create(name="Events", slug="events")
    user = User.objects.create_user("events@exchange.example", "correct horse battery")
    Membership.objects.create(user=user, lab=lab, role=Role.MANAGER)
    start = events.event_latest()
    begun, end = threading.Event(), threading.Event()

    def writes() -> None:
        try:
            with transaction.atomic():
                event_emit("tests.happened", lab_id=lab.pk, payload={})
                begun.set()
                end.wait(30)
                transaction.set_rollback(True)
        finally:
            connection.close()

    other = threading.Thread(target=writes)
    other.start()
    begun.wait(30)
    mine = event_emit("tests.happened", lab_id=lab.pk, payload={})
    wanted = events.WantedEvents()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(events, "HOLE_S", 15.0)
        assert events.event_stretch(user, start, wanted).until < mine.pk  # it may be filled still
        end.set()
        other.join()
        assert events.event_stretch(user, start, wanted).until == mine.pk


def test_what_comes_at_once_is_bounded_and_led_on(
    held: Lab1, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "AT_ONCE", 2)
    _, start, _ = _read(held.client(), None)
    for _ in range(3):
        _drawn(held)
    seen: list[int] = []
    after, retry = start, 50
    while retry == 50:
        told, after, retry = _read(held.client(), after)
        seen += [one["at"] for one in told if one["type"] == "roi.saved"]
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
def test_what_is_wrong_is_said(held: Lab1, query: str, after: str, status: int) -> None:
    answer = held.client().get(f"{PATH}{query}", headers={"Last-Event-ID": after})
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")


def test_another_lab_hears_nothing(held: Lab1) -> None:
    other = User.objects.create_user("other@elsewhere.example", "correct horse battery")
    lab = Lab.objects.create(name="Elsewhere", slug="elsewhere")
    Membership.objects.create(user=other, lab=lab, role=Role.MANAGER)
    client = Client()
    client.force_login(other)
    _, start, _ = _read(client, None)
    _drawn(held)
    told, after, _ = _read(client, start)
    assert told == [] and after > start


def test_a_token_hears_of_its_areas(held: Lab1) -> None:
    ApiToken.objects.filter(user=held.manager).update(areas={"cases": TokenScope.READ})
    _, start, _ = _read(held.client(), None)
    _drawn(held)
    assert [one for one in _read(held.client(), start)[0] if one["object"] == "roi"] == []


def test_a_blind_reading_is_told_to_nobody_and_others_work_not_to_its_reader(held: Lab1) -> None:
    reader, second = (
        User.objects.create_user(f"{name}@exchange.example", "correct horse battery")
        for name in ("reader", "second")
    )
    for person in (reader, second):
        Membership.objects.create(user=person, lab=held.lab, role=Role.ANNOTATOR)
    study = study_create(lab=held.lab, user=held.manager, name="Blind")
    wanted = WantedReadings(canvases=[held.world.canvas], people=[reader, second])
    readings_assign(study=study, user=held.manager, wanted=wanted)
    _, start, _ = _read(held.client(), None)
    hidden = roi_create(canvas=held.world.canvas, user=reader, geometry=RING).roi
    others = _drawn(held)
    client = Client()
    client.force_login(reader)
    assert str(hidden.pk) not in json.dumps(_read(held.client(), start)[0])
    assert others in json.dumps(_read(held.client(), start)[0])
    assert others not in json.dumps(_read(client, start)[0])


def test_listening_keeps_no_session_alive(held: Lab1, settings: Any) -> None:
    client = Client()
    client.force_login(held.manager)
    client.get("/api/v1/me/")
    before = dict(client.session)
    _read(client, None)
    assert dict(client.session) == before
    assert not session_is_over(client.session)


def test_hearing_asks_the_database_no_more_for_more(
    held: Lab1, django_assert_max_num_queries: Any
) -> None:
    _, start, _ = _read(held.client(), None)
    for _ in range(4):
        _drawn(held)
    with django_assert_max_num_queries(8):
        assert len(_read(held.client(), start, "?types=roi.saved")[0]) == 4

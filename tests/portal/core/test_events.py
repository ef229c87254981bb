from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import transaction

from portal.core import events
from portal.core.models import Event

pytestmark = pytest.mark.django_db


@pytest.fixture
def handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for registered in ("_HANDLERS", "_BATCH_HANDLERS"):
        monkeypatch.setattr(events, registered, type(events._HANDLERS)(list))
    yield


def test_an_event_is_a_row_and_reaches_its_subscribers(handlers: None) -> None:
    heard: list[Event] = []
    events.subscribe("roi.saved")(heard.append)
    event = events.event_emit("roi.saved", lab_id=None, payload={"roi": "1"})
    events.event_emit("roi.deleted", lab_id=None, payload={})
    assert heard == [event]
    assert Event.objects.filter(name="roi.saved").get().payload == {"roi": "1"}


def test_subscribing_twice_is_hearing_once(handlers: None) -> None:
    heard: list[Event] = []

    def listen(event: Event) -> None:
        heard.append(event)

    events.subscribe("x")(listen)
    events.subscribe("x")(listen)
    events.event_emit("x", lab_id=None, payload={})
    assert len(heard) == 1


def test_no_row_is_left_when_a_subscriber_fails(handlers: None) -> None:
    def fail(event: Event) -> None:
        raise RuntimeError("no")

    events.subscribe("x")(fail)
    with pytest.raises(RuntimeError), transaction.atomic():
        events.event_emit("x", lab_id=None, payload={})
    assert not Event.objects.exists()

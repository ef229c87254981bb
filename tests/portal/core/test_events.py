from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import transaction

from portal.core import events
from portal.core.models import Event
from portal.core.registry import Registry

pytestmark = pytest.mark.django_db


@pytest.fixture
def handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for registered in ("HANDLERS", "BATCH_HANDLERS"):
        monkeypatch.setattr(events, registered, Registry())
    yield


def test_an_event_is_a_row_and_reaches_its_subscribers(handlers: None) -> None:
    heard: list[Event] = []
    events.HANDLERS.register("roi.saved")(heard.append)
    event = events.event_emit("roi.saved", lab_id=None, payload={"roi": "1"})
    events.event_emit("roi.deleted", lab_id=None, payload={})
    assert heard == [event]
    assert Event.objects.filter(name="roi.saved").get().payload == {"roi": "1"}


def test_subscribing_twice_is_hearing_once(handlers: None) -> None:
    heard: list[Event] = []

    def listen(event: Event) -> None:
        heard.append(event)

    events.HANDLERS.register("x")(listen)
    events.HANDLERS.register("x")(listen)
    events.event_emit("x", lab_id=None, payload={})
    assert len(heard) == 1


def test_no_row_is_left_when_a_subscriber_fails(handlers: None) -> None:
    def fail(event: Event) -> None:
        raise RuntimeError("no")

    events.HANDLERS.register("x")(fail)
    with pytest.raises(RuntimeError), transaction.atomic():
        events.event_emit("x", lab_id=None, payload={})
    assert not Event.objects.exists()

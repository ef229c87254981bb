"""From the outbox to a receiver: signed, once unless somebody dies, again until it is taken."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from portal.annotations.services import roi_create
from portal.audit.models import AuditEntry
from portal.core.events import event_emit
from portal.core.mail import mail_flush
from portal.core.models import Event
from portal.hooks import ledger, selectors
from portal.hooks.catalogue import TYPES, message_of, waits
from portal.hooks.models import DeliveryState, Webhook, WebhookDelivery, WebhookState
from portal.hooks.reaching import Answer
from portal.hooks.services import (
    deliveries_replay,
    delivery_replay,
    webhook_create,
    webhook_ping,
    webhook_secret_change,
    webhook_update,
)
from portal.hooks.worker import Sender
from portal.labs.models import Lab, User
from portal.reading.services import WantedReadings, readings_assign, study_create
from tests.portal.annotations.conftest import make_canvas
from tests.portal.annotations.support import box
from tests.portal.hooks.conftest import Receiver

pytestmark = pytest.mark.django_db
NAMES = {"accession": "T-4711", "patient_key": "Maria Muster", "name": "Muster.svs", "text": "Hm"}


def _emit(lab: Lab, name: str = "case.created", **more: Any) -> Event:
    return event_emit(name, lab_id=lab.pk, payload={"case_id": str(uuid.uuid4())} | more)


def _run(sender: Sender) -> None:
    while sender.step() or not sender.is_idle:
        pass


def _later(delivery: WebhookDelivery | None = None) -> None:
    """Its time has come, and no sender holds it."""
    rows = WebhookDelivery.objects.all()
    rows.update(due_at=timezone.now() - timedelta(seconds=1), lease_until=None)


def test_what_happens_arrives_signed_so_that_another_library_takes_it(
    lab: Lab, made: tuple[Webhook, str], receiver: Receiver, sender: Sender, settings: Any
) -> None:
    event = _emit(lab)
    _run(sender)
    ((headers, body),) = receiver.got
    said = Verifier(made[1]).verify(body, headers)
    case = event.payload["case_id"]
    assert said["type"] == "case.created" and said["data"]["id"] == case
    assert said["data"]["link"] == f"{settings.TESSERA_URL}/api/v1/cases/{case}/"
    assert headers["content-type"] == "application/json"
    with pytest.raises(WebhookVerificationError):
        Verifier(made[1]).verify(body.replace(b"created", b"changed"), headers)
    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, headers["webhook-id"]) == ("delivered", delivery.message_id)
    assert [one.status for one in delivery.attempts.all()] == [204]
    assert not Event.objects.filter(is_waiting=True).exists()
    assert ledger.sweep() == 0  # and it is swept once


def test_a_webhook_hears_of_its_types_in_its_lab_while_it_is_on(
    lab: Lab, other_lab: Lab, manager: User, made: tuple[Webhook, str]
) -> None:
    hook, _ = made
    webhook_update(hook=hook, user=manager, types=["slide.ready", "case.created"])
    for name, where in (("case.created", lab), ("case.changed", lab), ("case.created", other_lab)):
        _emit(where, name)
    _emit(lab, "roi.embedded")  # no other system's matter
    ledger.sweep()
    assert [one.type for one in WebhookDelivery.objects.all()] == ["case.created"]
    webhook_update(hook=hook, user=manager, is_on=False)
    _emit(lab)
    ledger.sweep()
    assert WebhookDelivery.objects.count() == 1


def test_what_happened_before_a_webhook_was_made_is_not_told_to_it(
    lab: Lab, manager: User, receiver: Receiver
) -> None:
    _emit(lab)
    webhook_create(lab=lab, user=manager, name="LIS", url=receiver.url)
    assert ledger.sweep() == 1
    assert not WebhookDelivery.objects.exists()


def test_of_regions_saved_in_bulk_there_is_one_message(lab: Lab, manager: User, made: Any) -> None:
    assert not waits("roi.saved", {"roi_id": "1", "is_bulk": True})
    _emit(lab, "rois.saved_in_bulk", canvas_id=str(make_canvas(lab).pk), user_id=str(manager.pk))
    ledger.sweep()
    assert WebhookDelivery.objects.get().type == "rois.saved_in_bulk"


@pytest.mark.parametrize("name", sorted(TYPES))
def test_no_message_holds_what_a_person_typed(name: str, lab: Lab) -> None:
    kind = TYPES[name]
    payload = {key: str(uuid.uuid4()) for key in (kind.key, *kind.ids)} | NAMES
    body = message_of(name, payload, lab_id=lab.pk, at=timezone.now())
    assert not [text for text in NAMES.values() if text in body]
    data = json.loads(body)["data"]
    assert data["id"] == payload[kind.key]
    assert data["link"] or kind.kind in {"bin", "share"}


def test_a_failing_receiver_is_asked_again_under_the_same_id(
    lab: Lab, made: tuple[Webhook, str], receiver: Receiver, sender: Sender
) -> None:
    receiver.answers = [500, 301, 429]
    _emit(lab)
    for _ in range(4):
        _run(sender)
        _later()
    delivery = WebhookDelivery.objects.get()
    assert delivery.state == DeliveryState.DELIVERED
    assert [one.status for one in delivery.attempts.all()] == [500, 301, 429, 204]
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    assert len({body for _, body in receiver.got}) == 1
    assert Webhook.objects.get().failing_since is None


def test_the_pauses_grow_and_end_after_three_days(lab: Lab, made: Any) -> None:
    assert timedelta(days=3) <= sum(ledger.SCHEDULE, timedelta()) < timedelta(days=3, hours=1)
    assert list(ledger.SCHEDULE) == sorted(ledger.SCHEDULE)
    _emit(lab)
    ledger.sweep()
    for pause in ledger.SCHEDULE:
        (delivery,) = ledger.claim(9)
        before = timezone.now()
        ledger.record([(delivery, Answer(0.1, status=500))])
        delivery.refresh_from_db()
        assert 0.85 * pause < delivery.due_at - before < 1.15 * pause + timedelta(seconds=5)
        assert ledger.claim(9) == []
        _later()
    (last,) = ledger.claim(9)
    ledger.record([(last, Answer(0.1, error="nothing listens at this address"))])
    last.refresh_from_db()
    assert (last.state, last.attempts.count()) == ("failed", 10)
    assert Webhook.objects.get().is_on  # it has failed for seconds, not for days


def test_what_a_killed_sender_held_goes_on_under_its_id_and_the_dead_writes_nothing(
    lab: Lab, made: Any
) -> None:
    _emit(lab)
    ledger.sweep()
    (held,) = ledger.claim(9)
    assert ledger.claim(9) == []
    WebhookDelivery.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    (again,) = ledger.claim(9)
    assert again.message_id == held.message_id
    ledger.record([(held, Answer(0.1, status=500))])  # it was only slow
    again.refresh_from_db()
    assert again.lease_token is not None
    ledger.record([(again, Answer(0.1, status=200))])
    again.refresh_from_db()
    assert again.state == DeliveryState.DELIVERED


def test_a_receiver_that_hangs_keeps_no_other_waiting(lab: Lab, manager: User, made: Any) -> None:
    other, _ = webhook_create(lab=lab, user=manager, name="RIS", url="https://ris.example/")
    webhook_update(hook=other, user=manager, types=["case.changed"])
    for _ in range(30):
        _emit(lab)
    _emit(lab, "case.changed")
    ledger.sweep()
    taken = ledger.claim(16)
    assert [one.webhook_id for one in taken].count(made[0].pk) == ledger.AT_ONCE_EACH
    assert [one.webhook_id for one in taken].count(other.pk) == 1
    busy = {made[0].pk: ledger.AT_ONCE_EACH}
    assert ledger.claim(16, busy=busy) == []


def test_gone_switches_off_at_once_and_managers_are_told(
    lab: Lab,
    manager: User,
    made: tuple[Webhook, str],
    receiver: Receiver,
    sender: Sender,
    settings: Any,
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    receiver.answers = [410]
    _emit(lab)
    _run(sender)
    mail_flush()
    hook = Webhook.objects.get()
    assert hook.state == WebhookState.GONE
    (message,) = mail.outbox
    assert message.to == [manager.email] and str(hook.pk) in message.body
    assert AuditEntry.objects.filter(action="webhook.disabled", object_id=hook.pk).exists()


def test_days_of_failure_switch_off_and_what_waited_can_be_replayed(
    lab: Lab, manager: User, made: tuple[Webhook, str]
) -> None:
    for _ in range(2):
        _emit(lab)
    ledger.sweep()
    WebhookDelivery.objects.update(tries=len(ledger.SCHEDULE))
    Webhook.objects.update(failing_since=timezone.now() - ledger.FAILING_FOR)
    (first, _) = ledger.claim(9)
    (ended,) = ledger.record([(first, Answer(0.1, status=503))])
    assert ended.state == WebhookState.FAILING
    assert set(WebhookDelivery.objects.values_list("state", flat=True)) == {"failed"}
    hook = selectors.webhook_get(manager, webhook_id=ended.webhook_id)
    webhook_update(hook=hook, user=manager, is_on=True)
    assert deliveries_replay(hook=hook, user=manager) == 2
    assert len(ledger.claim(9)) == 2


def test_a_replay_keeps_the_id_and_a_new_secret_overlaps_with_the_old(
    lab: Lab, manager: User, made: tuple[Webhook, str], receiver: Receiver, sender: Sender
) -> None:
    hook, before = made
    webhook_ping(hook=hook, user=manager)
    _run(sender)
    secret = webhook_secret_change(hook=hook, user=manager)
    delivery_replay(delivery=WebhookDelivery.objects.get(), user=manager)
    _run(sender)
    (first, _), (second, body) = receiver.got
    assert first["webhook-id"] == second["webhook-id"]
    for one in (before, secret):
        assert Verifier(one).verify(body, second)["type"] == "webhook.ping"
    Webhook.objects.update(before_until=timezone.now() - timedelta(seconds=1))
    assert Webhook.objects.get().secrets == [secret]


def test_the_secret_does_not_stand_in_the_database(made: tuple[Webhook, str]) -> None:
    row = Webhook.objects.values().get()
    assert made[1] not in str(row) and made[1].removeprefix("whsec_") not in str(row)


def test_what_a_blind_reader_draws_is_told_to_nobody(
    lab: Lab, manager: User, annotator: User, reviewer: User, made: tuple[Webhook, str]
) -> None:
    canvas = make_canvas(lab)
    study = study_create(lab=lab, user=manager, name="Grades")
    wanted = WantedReadings(canvases=[canvas], people=[annotator, reviewer])
    readings_assign(study=study, user=manager, wanted=wanted)
    drawn = [
        roi_create(canvas=canvas, user=one, geometry=box(10, 10, 90, 90)).roi
        for one in (annotator, manager)
    ]
    # Whose they are it does not say.
    _emit(lab, "rois.saved_in_bulk", canvas_id=str(canvas.pk), user_id=str(manager.pk))
    ledger.sweep()
    told = WebhookDelivery.objects.filter(type__startswith="roi").values_list("body", flat=True)
    assert [json.loads(body)["data"]["id"] for body in told] == [str(drawn[1].pk)]


def test_old_deliveries_are_forgotten(lab: Lab, made: Any) -> None:
    for _ in range(2):
        _emit(lab)
    ledger.sweep()
    (done, waiting) = ledger.claim(9)
    ledger.record([(done, Answer(0.1, status=200))])
    WebhookDelivery.objects.update(created_at=timezone.now() - timedelta(days=31))
    assert ledger.deliveries_prune() == 2  # with its attempt
    assert WebhookDelivery.objects.get().pk == waiting.pk

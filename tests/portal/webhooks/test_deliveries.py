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

from portal.annotations.services.rois import roi_create
from portal.audit.models import AuditEntry
from portal.core.events import event_emit
from portal.core.mail import mail_flush
from portal.core.models import Event
from portal.jobs.models import Job, JobState, WorkerHeartbeat
from portal.jobs.selectors.jobs import job_list
from portal.jobs.worker.reaper import reap
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab, User
from portal.reader_studies.services.assignments import ReadingPlan
from portal.reader_studies.services.studies import readings_assign, study_create
from portal.webhooks import selectors, tasks
from portal.webhooks import sending as ledger
from portal.webhooks.catalogue import TYPES, message_of, waits
from portal.webhooks.models import DeliveryState, Webhook, WebhookDelivery, WebhookState
from portal.webhooks.services import (
    deliveries_replay,
    delivery_replay,
    webhook_create,
    webhook_ping,
    webhook_secret_change,
    webhook_update,
)
from portal.webhooks.transport import Answer
from tests.portal.annotations.conftest import make_canvas
from tests.portal.annotations.support import box
from tests.portal.webhooks.conftest import Receiver, deliver

pytestmark = pytest.mark.django_db
NAMES = {"accession": "T-4711", "patient_key": "Maria Muster", "name": "Muster.svs", "text": "Hm"}


def _emit(lab: Lab, name: str = "case.created", **more: Any) -> Event:
    return event_emit(name, lab_id=lab.pk, payload={"case_id": str(uuid.uuid4())} | more)


def _due(hook: Webhook) -> list[WebhookDelivery]:
    return ledger.deliveries_due(hook.pk, max_count=9)


def _later() -> None:
    """The time of every delivery has come."""
    WebhookDelivery.objects.update(due_at=timezone.now() - timedelta(seconds=1))


def test_a_delivery_is_signed_so_that_another_library_verifies_it(
    lab: Lab, made: tuple[Webhook, str], receiver: Receiver, settings: Any
) -> None:
    event = _emit(lab)
    deliver()
    ((headers, body),) = receiver.got
    message = Verifier(made[1]).verify(body, headers)
    case = event.payload["case_id"]
    assert message["type"] == "case.created" and message["data"]["id"] == case
    assert message["data"]["link"] == f"{settings.TESSERA_URL}/api/v1/cases/{case}/"
    assert headers["content-type"] == "application/json"
    with pytest.raises(WebhookVerificationError):
        Verifier(made[1]).verify(body.replace(b"created", b"changed"), headers)
    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, headers["webhook-id"]) == ("delivered", delivery.message_id)
    assert [attempt.status for attempt in delivery.attempts.all()] == [204]
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
    assert [delivery.type for delivery in WebhookDelivery.objects.all()] == ["case.created"]
    webhook_update(hook=hook, user=manager, is_on=False)
    _emit(lab)
    ledger.sweep()
    assert WebhookDelivery.objects.count() == 1


def test_events_before_the_creation_of_a_webhook_are_not_delivered(
    lab: Lab, manager: User, receiver: Receiver
) -> None:
    _emit(lab)
    webhook_create(lab=lab, user=manager, name="LIS", url=receiver.url)
    assert ledger.sweep() == 1
    assert not WebhookDelivery.objects.exists()


def test_one_message_is_sent_for_regions_saved_in_bulk(lab: Lab, manager: User, made: Any) -> None:
    assert not waits("roi.saved", {"roi_id": "1", "is_bulk": True})
    _emit(lab, "rois.saved_in_bulk", canvas_id=str(make_canvas(lab).pk), user_id=str(manager.pk))
    ledger.sweep()
    assert WebhookDelivery.objects.get().type == "rois.saved_in_bulk"


@pytest.mark.parametrize("name", sorted(TYPES))
def test_no_message_contains_typed_text(name: str, lab: Lab) -> None:
    kind = TYPES[name]
    payload = {key: str(uuid.uuid4()) for key in (kind.key, *kind.ids)} | NAMES
    body = message_of(name, payload, lab_id=lab.pk, at=timezone.now())
    assert not [text for text in NAMES.values() if text in body]
    data = json.loads(body)["data"]
    assert data["id"] == payload[kind.key]
    assert data["link"] or kind.kind in {"trash", "share"}


def test_a_failing_receiver_gets_retries_under_the_same_id(
    lab: Lab, made: tuple[Webhook, str], receiver: Receiver
) -> None:
    receiver.answers = [500, 301, 429]
    _emit(lab)
    for _ in range(4):
        deliver()
        _later()
    delivery = WebhookDelivery.objects.get()
    assert delivery.state == DeliveryState.DELIVERED
    assert [attempt.status for attempt in delivery.attempts.all()] == [500, 301, 429, 204]
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    assert len({body for _, body in receiver.got}) == 1
    assert Webhook.objects.get().failing_since is None


def test_the_pauses_grow_and_end_after_three_days(lab: Lab, made: tuple[Webhook, str]) -> None:
    assert timedelta(days=3) <= sum(ledger.SCHEDULE, timedelta()) < timedelta(days=3, hours=1)
    assert list(ledger.SCHEDULE) == sorted(ledger.SCHEDULE)
    _emit(lab)
    ledger.sweep()
    for pause in ledger.SCHEDULE:
        (delivery,) = _due(made[0])
        before = timezone.now()
        ledger.record([(delivery, Answer(0.1, status=500))])
        delivery.refresh_from_db()
        assert 0.85 * pause < delivery.due_at - before < 1.15 * pause + timedelta(seconds=5)
        assert _due(made[0]) == []
        _later()
    (last,) = _due(made[0])
    ledger.record([(last, Answer(0.1, error="nothing listens at this address"))])
    last.refresh_from_db()
    assert (last.state, last.attempts.count()) == ("failed", 10)
    assert Webhook.objects.get().is_on  # it has failed for seconds, not for days


def test_a_delivery_of_a_killed_worker_is_repeated_under_the_same_id(
    lab: Lab, made: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send_and_die(delivery: WebhookDelivery) -> Answer:
        send(delivery)
        raise KeyboardInterrupt

    send = tasks.send
    _emit(lab)
    ledger.deliveries_schedule()
    job = Job.objects.get()
    monkeypatch.setattr(tasks, "send", send_and_die)
    with pytest.raises(KeyboardInterrupt):
        job_run(job.pk)
    monkeypatch.undo()
    assert ledger.deliveries_schedule() == 0  # its job is still open
    Job.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    reap()
    assert job_run(job.pk)
    assert len(receiver.got) == 2
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    assert WebhookDelivery.objects.get().state == DeliveryState.DELIVERED


def test_a_worker_that_lost_its_job_records_no_delivery(
    lab: Lab, made: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send_nothing(delivery: WebhookDelivery) -> Answer:
        return Answer(0.1, status=500)

    def due_and_lost(*args: Any, **more: Any) -> list[WebhookDelivery]:
        Job.objects.update(lease_token=uuid.uuid4())  # another worker took the job over
        return due(*args, **more)

    due = ledger.deliveries_due
    _emit(lab)
    ledger.deliveries_schedule()
    monkeypatch.setattr(tasks, "send", send_nothing)
    monkeypatch.setattr(ledger, "deliveries_due", due_and_lost)
    job_run(Job.objects.get().pk)
    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, delivery.tries, delivery.attempts.count()) == ("waiting", 0, 0)


def test_receivers_that_hang_leave_half_of_the_processes_to_other_work(
    lab: Lab, manager: User, made: tuple[Webhook, str]
) -> None:
    for name in ("RIS", "PACS"):
        webhook_create(lab=lab, user=manager, name=name, url=f"https://{name.lower()}.example/")
    WorkerHeartbeat.objects.create(
        name="w", queues="default", processes=4, last_seen_at=timezone.now()
    )
    _emit(lab)
    assert [ledger.deliveries_schedule() for _ in range(2)] == [2, 0]
    assert Job.objects.count() == 2


def test_the_webhook_served_longest_ago_is_next(
    lab: Lab, manager: User, made: tuple[Webhook, str]
) -> None:
    other, _ = webhook_create(lab=lab, user=manager, name="RIS", url="https://ris.example/")
    Webhook.objects.filter(pk=made[0].pk).update(last_sent_at=timezone.now())
    _emit(lab)
    ledger.deliveries_schedule()
    assert Job.objects.get().target_id == other.pk


def test_a_job_that_failed_is_not_submitted_again_at_once(lab: Lab, made: Any) -> None:
    _emit(lab)
    ledger.deliveries_schedule()
    Job.objects.update(state=JobState.FAILED, finished_at=timezone.now())
    assert ledger.deliveries_schedule() == 0
    Job.objects.update(finished_at=timezone.now() - ledger.AFTER_DEFECT)
    assert ledger.deliveries_schedule() == 1


def test_sending_leaves_no_job_and_no_event(lab: Lab, manager: User, made: Any) -> None:
    _emit(lab)
    ledger.deliveries_schedule()
    assert not job_list(user=manager).exists()
    job_run(Job.objects.get().pk)
    assert WebhookDelivery.objects.get().state == DeliveryState.DELIVERED
    assert not Job.objects.exists()
    assert not Event.objects.filter(name="job.ended").exists()


def test_an_answer_for_a_webhook_deleted_in_the_meantime_is_dropped(
    lab: Lab, made: tuple[Webhook, str]
) -> None:
    _emit(lab)
    ledger.sweep()
    (delivery,) = _due(made[0])
    made[0].delete()
    assert ledger.record([(delivery, Answer(0.1, status=200))]) == []


def test_status_410_disables_the_webhook_and_notifies_managers(
    lab: Lab,
    manager: User,
    made: tuple[Webhook, str],
    receiver: Receiver,
    settings: Any,
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    receiver.answers = [410]
    _emit(lab)
    deliver()
    mail_flush()
    hook = Webhook.objects.get()
    assert hook.state == WebhookState.GONE
    (message,) = mail.outbox
    assert message.to == [manager.email] and str(hook.pk) in message.body
    assert AuditEntry.objects.filter(action="webhook.disabled", object_id=hook.pk).exists()


def test_days_of_failure_disable_the_webhook_and_deliveries_can_be_replayed(
    lab: Lab, manager: User, made: tuple[Webhook, str]
) -> None:
    for _ in range(2):
        _emit(lab)
    ledger.sweep()
    WebhookDelivery.objects.update(tries=len(ledger.SCHEDULE))
    Webhook.objects.update(failing_since=timezone.now() - ledger.FAILING_FOR)
    (first, _) = _due(made[0])
    (ended,) = ledger.record([(first, Answer(0.1, status=503))])
    assert ended.state == WebhookState.FAILING
    assert set(WebhookDelivery.objects.values_list("state", flat=True)) == {"failed"}
    hook = selectors.webhook_get(manager, webhook_id=ended.webhook_id)
    webhook_update(hook=hook, user=manager, is_on=True)
    assert deliveries_replay(hook=hook, user=manager) == 2
    assert len(_due(hook)) == 2


def test_a_replay_has_the_same_id_and_the_old_secret_remains_valid_for_a_while(
    lab: Lab, manager: User, made: tuple[Webhook, str], receiver: Receiver
) -> None:
    hook, before = made
    webhook_ping(hook=hook, user=manager)
    deliver()
    secret = webhook_secret_change(hook=hook, user=manager)
    delivery_replay(delivery=WebhookDelivery.objects.get(), user=manager)
    deliver()
    (first, _), (second, body) = receiver.got
    assert first["webhook-id"] == second["webhook-id"]
    for item in (before, secret):
        assert Verifier(item).verify(body, second)["type"] == "webhook.ping"
    Webhook.objects.update(before_until=timezone.now() - timedelta(seconds=1))
    assert Webhook.objects.get().secrets == [secret]


def test_the_secret_is_encrypted_in_the_database(made: tuple[Webhook, str]) -> None:
    row = Webhook.objects.values().get()
    assert made[1] not in str(row) and made[1].removeprefix("whsec_") not in str(row)


def test_rois_of_a_blind_reader_are_not_delivered(
    lab: Lab, manager: User, annotator: User, reviewer: User, made: tuple[Webhook, str]
) -> None:
    canvas = make_canvas(lab)
    study = study_create(lab=lab, user=manager, name="Grades")
    plan = ReadingPlan(canvases=[canvas], people=[annotator, reviewer])
    readings_assign(study=study, user=manager, plan=plan)
    drawn = [
        roi_create(canvas=canvas, user=item, geometry=box(10, 10, 90, 90)).roi
        for item in (annotator, manager)
    ]
    # Whose they are it does not say.
    _emit(lab, "rois.saved_in_bulk", canvas_id=str(canvas.pk), user_id=str(manager.pk))
    ledger.sweep()
    rows = WebhookDelivery.objects.filter(type__startswith="roi").values_list("body", flat=True)
    assert [json.loads(body)["data"]["id"] for body in rows] == [str(drawn[1].pk)]


def test_old_deliveries_are_forgotten(lab: Lab, made: tuple[Webhook, str]) -> None:
    for _ in range(2):
        _emit(lab)
    ledger.sweep()
    (done, waiting) = _due(made[0])
    ledger.record([(done, Answer(0.1, status=200))])
    WebhookDelivery.objects.update(created_at=timezone.now() - timedelta(days=31))
    assert ledger.deliveries_prune() == 2  # with its attempt
    assert WebhookDelivery.objects.get().pk == waiting.pk

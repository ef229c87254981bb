"""The pages: a secret shown once, the log in a fixed number of queries, mistakes named in place."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.core.events import event_emit, events_emit
from portal.labs.models import Lab, User
from portal.webhooks import sending as ledger
from portal.webhooks.models import Webhook, WebhookDelivery
from portal.webhooks.transport import Answer

pytestmark = pytest.mark.django_db


@pytest.fixture
def managing(client: Client, manager: User) -> Client:
    client.force_login(manager)
    return client


def test_a_webhook_is_made_its_secret_shown_once_and_it_is_changed(
    managing: Client, receiver: Any
) -> None:
    sent = {"name": "LIS", "url": receiver.url, "types": ["case.created"]}
    made = managing.post("/lab/webhooks/", sent)
    assert made.status_code == 201 and b"whsec_" in made.content
    hook = Webhook.objects.get()
    path = f"/lab/webhooks/{hook.pk}/"
    assert b"whsec_" not in managing.get(path).content
    assert managing.get(f"{path}edit/").status_code == 200
    managing.post(f"{path}edit/", sent | {"name": "RIS"})
    managing.post(f"{path}switch/", {})
    hook.refresh_from_db()
    assert (hook.name, hook.state) == ("RIS", "off")
    assert managing.post(f"{path}ping/").status_code == 409
    assert b"whsec_" in managing.post(f"{path}secret/").content


def test_an_address_inside_is_refused_at_its_field(managing: Client) -> None:
    answer = managing.post("/lab/webhooks/", {"name": "LIS", "url": "https://10.0.0.1/"})
    assert answer.status_code == 400 and b"TESSERA_WEBHOOK_NETWORKS" in answer.content


def test_the_log_costs_as_many_queries_for_many_as_for_one(
    managing: Client, lab: Lab, made: tuple[Webhook, str], django_assert_max_num_queries: Any
) -> None:
    path = f"/lab/webhooks/{made[0].pk}/"
    for answer in (Answer(0.1, status=500, text="<b>full</b>"), Answer(0.1, status=200)) * 4:
        event_emit("case.created", lab_id=lab.pk, payload={"case_id": str(lab.pk)})
        ledger.sweep()
        (delivery,) = ledger.deliveries_due(made[0].pk, max_count=9)
        ledger.record([(delivery, answer)])
    with django_assert_max_num_queries(20):
        page = managing.get(path).content.decode()
    assert page.count("HTTP 500") == 8 and "&lt;b&gt;full" in page  # in the summary and the list
    assert page.count(">Send again<") == 4  # what waits is sent anyway
    assert managing.get(path, {"state": "waiting"}).content.decode().count("msg_") == 4
    WebhookDelivery.objects.filter(state="waiting").update(state="failed")
    assert managing.post(f"{path}replay/").status_code == 302
    assert WebhookDelivery.objects.filter(state="waiting").count() == 4


def test_the_log_is_read_by_cursor_while_it_grows(
    api_as: Any, manager: User, lab: Lab, made: tuple[Webhook, str]
) -> None:
    def come(count: int) -> None:
        cases = [{"case_id": str(lab.pk)}] * count
        events_emit("case.changed", lab_id=lab.pk, payloads=cases)
        ledger.sweep()

    come(5)
    client, seen = api_as(manager), []
    there = set(WebhookDelivery.objects.values_list("pk", flat=True))
    where = f"/api/v1/webhooks/{made[0].pk}/deliveries/?page_size=2"
    while where:
        page = client.get(where).json()
        seen += [row["id"] for row in page["results"]]
        where = page["next"]
        come(1)
    assert sorted(seen) == sorted(map(str, there))
    assert client.get(f"/api/v1/webhooks/{made[0].pk}/deliveries/?cursor=x").status_code == 400

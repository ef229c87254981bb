"""Two managers change webhooks at the same moment: neither takes back what the other did."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
from django.db import connection, connections

from portal.core.errors import ConflictError
from portal.labs.models import Lab, User
from portal.webhooks import services
from portal.webhooks.models import Webhook
from tests.threads import at_once

pytestmark = pytest.mark.django_db


def test_a_rename_preserves_a_concurrently_changed_secret(lab: Lab, manager: User) -> None:
    hook, _ = services.webhook_create(
        lab=lab, user=manager, name="LIS", url="https://lis.example.org/"
    )
    read_before = Webhook.objects.get(pk=hook.pk)
    services.webhook_secret_change(hook=hook, user=manager)
    services.webhook_update(hook=read_before, user=manager, name="RIS")
    now = Webhook.objects.get(pk=hook.pk)
    assert (now.name, now.sealed_secret) == ("RIS", hook.sealed_secret)
    services.webhook_secret_change(hook=hook, user=manager)
    assert Webhook.objects.get(pk=hook.pk).name == "RIS"


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(
    connection.vendor == "sqlite", reason="there a transaction is the only writer anyway"
)
def test_only_one_of_two_concurrent_webhooks_takes_the_last_place(
    lab: Lab, manager: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, result, save = threading.Barrier(2), list[str](), Webhook.save

    def slow(self: Webhook, **options: bool) -> None:
        with suppress(threading.BrokenBarrierError):  # the other is kept waiting, as it should be
            both.wait(timeout=1)
        save(self, **options)

    monkeypatch.setattr(services, "MAX_WEBHOOKS_PER_LAB", 1)
    monkeypatch.setattr(Webhook, "save", slow)

    def make() -> None:
        try:
            services.webhook_create(lab=lab, user=manager, name="LIS", url="https://lis.example/")
            result.append("made")
        except ConflictError as error:
            result.append(error.code)
        connections.close_all()

    at_once(make)
    assert sorted(result) == ["made", "too-many"]

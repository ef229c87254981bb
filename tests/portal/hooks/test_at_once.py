"""Two managers change a webhook at the same moment: neither takes back what the other did."""

from __future__ import annotations

import pytest

from portal.hooks import services
from portal.hooks.models import Webhook
from portal.labs.models import Lab, User

pytestmark = pytest.mark.django_db


def test_a_rename_keeps_a_secret_that_was_changed_meanwhile(lab: Lab, manager: User) -> None:
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

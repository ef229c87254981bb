"""Answers requests of one manager under a key, and what came of them; ``hang`` never ends."""

from __future__ import annotations

import signal
import sys
import time
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import django

django.setup()

from django.test import Client  # noqa: E402
from django.utils import timezone  # noqa: E402

from portal.archive.models import Case  # noqa: E402
from portal.core.models import IdempotencyRecord  # noqa: E402
from portal.labs.models import Invitation, Lab, Membership, Role, User  # noqa: E402
from tests.killing.command_line import dispatch  # noqa: E402

EMAIL = "sends@kill.example"
BODIES: dict[str, dict[str, str]] = {
    "invitations": {"email": "invited@kill.example", "role": "viewer"},
    "cases": {"accession": "K-9"},
}
PLACES = {
    "before": "portal.labs.selectors.lab_chosen",
    "after": "portal.labs.api.people.invitation_deliver",
    "within": "portal.core.api.views.response_store",
}


def send(kind: str, key: str) -> object:
    """Send a request; returns the answer and its duration."""
    began = time.monotonic()
    client = Client(headers={"host": "localhost"})
    client.force_login(_person())
    response = client.post(
        f"/api/v1/{kind}/",
        BODIES[kind] if kind != "cases" else BODIES[kind] | {"accession": key},
        content_type="application/json",
        headers={"Idempotency-Key": key},
    )
    return {
        "status": response.status_code,
        "code": response.json().get("code", ""),
        "retry_after": response.headers.get("Retry-After", ""),
        "seconds": time.monotonic() - began,
    }


def hang(kind: str, key: str, where: str) -> object:
    """The same, but it comes to ``where`` and no further."""

    def stuck(*_: Any, **__: Any) -> None:
        print("stuck", flush=True)
        signal.pause()
        sys.exit("nobody killed it")

    with patch(PLACES[where], stuck):
        return send(kind, key)


def run_out() -> object:
    """Let the leases on keys run out."""
    return IdempotencyRecord.objects.update(lease_until=timezone.now() - timedelta(seconds=1))


def made() -> object:
    """Counts of invitations and cases."""
    return {"invitations": Invitation.objects.count(), "cases": Case.objects.count()}


def _person() -> User:
    known = User.objects.filter(email=EMAIL).first()
    if known is not None:
        return known
    lab = Lab.objects.create(slug="sends", name="Sends")
    user = User.objects.create_user(EMAIL, "correct horse battery")
    Membership.objects.create(user=user, lab=lab, role=Role.MANAGER)
    return user


if __name__ == "__main__":
    dispatch({"send": send, "hang": hang, "run_out": run_out, "made": made})

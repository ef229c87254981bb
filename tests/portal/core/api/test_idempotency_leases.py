"""A POST that takes long is carried out once too, and holds no transaction for its whole length."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from portal.core.api import idempotency
from portal.core.models import IdempotencyRecord
from portal.labs.models import Invitation, User

PLACE, BODY = "/api/v1/invitations/", {"email": "new@example.org", "role": "viewer"}
BEFORE = "portal.labs.selectors.lab_chosen"  # nothing is written yet
AFTER = "portal.labs.api.people.invitation_deliver"  # the invitation is there
RunDuringRequest = Callable[[str, Callable[[], Any]], None]


@pytest.fixture
def send(api_as: Any, manager: User) -> Callable[..., Any]:
    def sent(body: Any = BODY) -> Any:
        client = api_as(manager)
        client.raise_request_exception = False
        return client.post(PLACE, body, format="json", headers={"Idempotency-Key": "long-work-1"})

    return sent


@pytest.fixture
def run_during_request(monkeypatch: pytest.MonkeyPatch) -> RunDuringRequest:
    """Do something once, in the middle of the first request that comes there."""

    def patch(where: str, act: Callable[[], Any]) -> None:
        module, _, name = where.rpartition(".")
        real, left = getattr(import_module(module), name), [act]

        def passing(*args: Any, **options: Any) -> Any:
            if left:
                left.pop()()
            return real(*args, **options)

        monkeypatch.setattr(where, passing)

    return patch


def _running_out() -> None:
    IdempotencyRecord.objects.update(lease_until=timezone.now() - timedelta(seconds=1))


def _later(send: Any) -> Any:
    """The answer to the same request, once the time of the first has run out."""
    _running_out()
    return send()


def _broken() -> None:
    raise RuntimeError("a bug")


def _refused(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_a_leased_request_is_carried_out_once_and_answered_the_same(send: Any, db: None) -> None:
    first, again = send(), send()
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json() and again["Idempotency-Replayed"] == "true"
    assert Invitation.objects.count() == 1
    assert _refused(send(BODY | {"role": "manager"})) == (422, "key-reused")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("where", [BEFORE, AFTER])
def test_a_running_request_holds_no_transaction_and_its_repeat_gets_409(
    send: Any, run_during_request: RunDuringRequest, where: str
) -> None:
    messages: list[Any] = []

    def look() -> None:
        assert not connection.in_atomic_block
        messages.append(send())

    run_during_request(where, look)
    assert send().status_code == 201
    assert _refused(messages[0]) == (409, "request-running") and int(messages[0]["Retry-After"]) > 0
    assert Invitation.objects.count() == 1


def test_a_request_that_ends_before_writing_frees_its_key(
    send: Any, run_during_request: RunDuringRequest, db: None
) -> None:
    run_during_request(BEFORE, _broken)
    assert send().status_code == 500
    assert not IdempotencyRecord.objects.exists()
    assert send().status_code == 201


def test_a_request_that_ends_after_writing_is_not_carried_out_again(
    send: Any, run_during_request: RunDuringRequest, db: None
) -> None:
    run_during_request(AFTER, _broken)
    assert send().status_code == 500
    again = send()
    assert _refused(again) == (409, "answer-not-stored") and again.json()["answered_status"] == 500
    assert Invitation.objects.count() == 1


def test_a_slow_request_loses_its_lease_and_writes_nothing(
    send: Any, run_during_request: RunDuringRequest, db: None
) -> None:
    messages: list[Any] = []

    def overtake() -> None:
        messages.append(_later(send))
        Invitation.objects.all().delete()  # or it would be refused as one that is there

    run_during_request(BEFORE, overtake)
    assert _refused(send()) == (409, "request-taken-over")
    assert messages[0].status_code == 201
    assert not Invitation.objects.exists()
    assert send().json() == messages[0].json()


def test_a_request_that_has_written_is_never_taken_over(
    send: Any, run_during_request: RunDuringRequest, db: None
) -> None:
    messages: list[Any] = []
    run_during_request(AFTER, lambda: messages.append(_later(send)))
    first = send()
    assert (
        _refused(messages[0]) == (409, "answer-not-stored")
        and messages[0].json()["answered_status"] is None
    )
    assert send().json() == first.json(), "it ended after all"
    assert Invitation.objects.count() == 1


def test_a_key_deleted_during_the_request_is_not_stored_afterwards(
    send: Any, run_during_request: RunDuringRequest, manager: User
) -> None:
    run_during_request(AFTER, lambda: idempotency.responses_forget(manager.pk))
    assert send().status_code == 201
    assert _refused(send()) == (409, "answer-not-stored")
    assert IdempotencyRecord.objects.get().body == ""

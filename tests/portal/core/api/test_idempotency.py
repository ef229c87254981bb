"""A write under an Idempotency-Key is carried out once, and answered the same each time."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connections
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone
from rest_framework.test import APIClient

from portal.archive.models import Case
from portal.archive.services.cases import case_create
from portal.core.api import idempotency
from portal.core.api.views import ApiView
from portal.core.models import IdempotencyRecord
from portal.labs.models import ApiToken, Lab, Membership, Role, User
from portal.labs.services.members import member_set_role
from portal.labs.services.tokens import tokens_revoke_of
from portal.webhooks.models import Webhook
from tests.threads import at_once

pytestmark = pytest.mark.django_db
CASES, KEY = "/api/v1/cases/", "a-key-of-mine"


def post(api: APIClient, body: Any, key: str = KEY, path: str = CASES) -> Any:
    return api.post(path, body, headers={"Idempotency-Key": key})


def test_a_request_sent_again_is_answered_the_same_and_done_once(api: APIClient, lab: Lab) -> None:
    first, again = (post(api, body) for body in ({"accession": "S-9", "organ": "lung"},) * 2)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert ("Idempotency-Replayed" in first, again["Idempotency-Replayed"]) == (False, "true")
    assert Case.objects.filter(lab=lab).count() == 1
    other = post(api, {"accession": "S-10"})
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")
    assert post(api, {"accession": "S-10"}, "short").status_code == 400
    assert post(api, {"accession": "S-10"}, "another-key").status_code == 201


def test_a_change_and_a_deletion_take_a_key_too(api: APIClient, lab: Lab) -> None:
    made = post(api, {"accession": "S-9"})
    url = f"{CASES}{made.json()['id']}/"
    headers = {"Idempotency-Key": KEY, "If-Match": made["ETag"]}
    first, again = (api.patch(url, {"organ": "lung"}, headers=headers) for _ in range(2))
    assert (first.status_code, first.content) == (200, again.content)
    assert (again["ETag"], again["Idempotency-Replayed"]) == (first["ETag"], "true")
    other = api.patch(url, {"organ": "liver"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")


def test_a_refusal_is_remembered_but_not_one_that_may_pass(
    api: APIClient, lab: Lab, annotator: User
) -> None:
    case = case_create(lab=lab, user=annotator, accession="S-1")
    wrong = [post(api, {"accession": ""}, "wrong-key") for _ in range(2)]
    assert [(failure.status_code, failure["Content-Type"]) for failure in wrong] == [
        (400, "application/problem+json")
    ] * 2
    assert wrong[0].json() == wrong[1].json()
    taken = {"accession": case.accession}
    assert post(api, taken).status_code == 409
    Case.objects.filter(pk=case.pk).update(accession="S-another")
    assert post(api, taken).status_code == 201


def test_keys_are_of_one_person_one_token_and_one_address(
    api: APIClient, api_as: Any, reviewer: User, lab: Lab
) -> None:
    assert post(api, {"accession": "S-9"}).status_code == 201
    assert post(api_as(reviewer), {"accession": "S-9"}).status_code == 409, "another person's"
    assert post(api, {"lab": str(lab.pk)}, path="/api/v1/label-versions/").status_code != 422
    Membership.objects.filter(lab=lab, user=reviewer).update(role=Role.VIEWER)
    assert post(api_as(reviewer), {"accession": "S-9"}).status_code == 403, "asked anew"


def test_two_at_once_are_one_request(api: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "transaction_lock_at_once", lambda name: False)
    refused = post(api, {"accession": "S-9"})
    assert (refused.status_code, refused.json()["code"]) == (409, "request-running")
    assert int(refused["Retry-After"]) > 0
    monkeypatch.undo()
    assert post(api, {"accession": "S-9"}).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_exactly_one_of_many_concurrent_requests_is_carried_out(annotator: User, lab: Lab) -> None:
    """On PostgreSQL the others hear 409 while it runs; on SQLite they wait for it."""
    barrier = threading.Barrier(6)
    messages: list[Any] = []

    def send() -> None:
        client = APIClient()
        client.force_authenticate(annotator)
        barrier.wait()
        while True:
            try:
                answer = post(client, {"accession": "S-9"})
            except OperationalError:  # SQLite in memory has no busy timeout
                continue
            messages.append((answer.status_code, answer.json()))
            if answer.status_code != 409:
                break
            assert answer.json()["code"] == "request-running"
        connections.close_all()

    at_once(send, 6)
    done = [body for status, body in messages if status == 201]
    assert len(done) == 6 and all(body == done[0] for body in done)
    assert Case.objects.filter(lab=lab).count() == 1


def test_a_process_killed_before_its_answer_has_no_effect(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise SystemExit

    monkeypatch.setattr("portal.core.api.views.response_store", killed)
    with pytest.raises(SystemExit):
        post(api, {"accession": "S-9"})
    assert not Case.objects.filter(accession="S-9").exists()
    monkeypatch.undo()
    assert post(api, {"accession": "S-9"}).status_code == 201


def test_a_large_answer_is_recorded_without_its_body(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "MAX_BODY_BYTES", 10)
    assert post(api, {"accession": "S-9"}).status_code == 201
    again = post(api, {"accession": "S-9"})
    assert (again.status_code, again.json()["code"]) == (409, "answer-not-stored")
    assert again.json()["answered_status"] == 201
    assert Case.objects.filter(accession="S-9").count() == 1


def test_stored_answers_are_encrypted(client: Any, annotator: User, settings: Any) -> None:
    """A token is shown once; a copy of the database must not give it away."""
    client.force_login(annotator)
    body = {"name": "Robot", "scope": "read"}
    made, again = (
        client.post(
            "/api/v1/tokens/",
            body,
            content_type="application/json",
            headers={"Idempotency-Key": KEY},
        )
        for _ in range(2)
    )
    assert made.json()["secret"] == again.json()["secret"]
    assert ApiToken.objects.filter(user=annotator).count() == 1
    (row,) = IdempotencyRecord.objects.all()
    assert "tess_" not in row.body and KEY not in row.body + row.id
    settings.SECRET_KEY = "another of at least fifty characters, as production wants"
    client.force_login(annotator)
    deleted = client.post(
        "/api/v1/tokens/", body, content_type="application/json", headers={"Idempotency-Key": KEY}
    )
    assert deleted.json()["code"] == "answer-not-stored"


def test_stored_answers_are_deleted_after_a_day_with_the_membership_and_by_an_erasure(
    api: APIClient, annotator: User
) -> None:
    assert post(api, {"accession": "S-9"}).status_code == 201
    idempotency.responses_forget()
    assert post(api, {"accession": "S-9"}).json()["code"] == "answer-not-stored"
    IdempotencyRecord.objects.update(
        created_at=timezone.now() - idempotency.RETENTION + timedelta(minutes=1)
    )
    assert idempotency.records_sweep() == 0
    IdempotencyRecord.objects.update(created_at=timezone.now() - idempotency.RETENTION)
    assert post(api, {"accession": "S-9"}).json()["code"] == "accession-taken", "a new request"
    assert idempotency.records_sweep() == 1
    assert post(api, {"accession": "S-11"}).status_code == 201
    tokens_revoke_of(annotator)
    deleted = post(api, {"accession": "S-11"})
    assert deleted.json()["code"] == "answer-not-stored", "told no more, and not done twice"
    assert IdempotencyRecord.objects.get().body == ""


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.VIEWER])
def test_no_earlier_answer_is_replayed_after_a_loss_of_rights(
    api_as: Any, lab: Lab, manager: User, role: Role
) -> None:
    other = User.objects.create_user("second@example.com")
    membership = Membership.objects.create(lab=lab, user=other, role=Role.MANAGER)
    api, hook = api_as(other), {"name": "LIS", "url": "https://lis.example/"}
    made = post(api, hook, path="/api/v1/webhooks/")
    assert made.json()["secret"]
    member_set_role(membership, role=role, by=manager)
    again = post(api, hook, path="/api/v1/webhooks/")
    assert (again.status_code, again.json()["code"]) == (409, "answer-not-stored")
    assert made.json()["secret"] not in again.content.decode()
    assert Webhook.objects.count() == 1, "it is not carried out again either"


def test_an_answer_is_replayed_after_a_change_of_role(
    api: APIClient, lab: Lab, annotator: User
) -> None:
    membership = Membership.objects.get(lab=lab, user=annotator)
    assert post(api, {"accession": "S-9"}).status_code == 201
    for role in (Role.ANNOTATOR, Role.REVIEWER):
        member_set_role(membership, role=role)
        assert post(api, {"accession": "S-9"})["Idempotency-Replayed"] == "true"


def test_every_post_of_the_api_takes_a_key_or_has_a_reason() -> None:
    views = {pattern.callback.cls for pattern in _posts(get_resolver().url_patterns)}
    assert len(views) > 40
    assert [view for view in views if not issubclass(view, ApiView)] == []
    left_out = {view.__name__: view.takes_no_key for view in views if view.takes_no_key}
    assert sorted(left_out) == [
        "CanvasOutlineApi",
        "SearchApi",
        "SlideViewSet",
        "UploadViewSet",
        "VideoViewSet",
    ]
    under_lease = sorted(view.__name__ for view in views if not view.holds_transaction)
    assert under_lease == [
        "CanvasRoiFileApi",
        "InvitationViewSet",
        "LearningViewSet",
        "ReportViewSet",
    ]


def _posts(patterns: Any) -> Any:
    for entry in patterns:
        if isinstance(entry, URLResolver):
            yield from _posts(entry.url_patterns)
        elif isinstance(entry, URLPattern) and _takes_post(entry.callback):
            yield entry


def _takes_post(callback: Any) -> bool:
    actions = getattr(callback, "actions", None)
    return hasattr(callback, "cls") and (
        "post" in actions if actions else hasattr(callback.cls, "post")
    )

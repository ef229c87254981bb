"""A POST under an Idempotency-Key is carried out once, and answered the same each time."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connections
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone
from rest_framework.test import APIClient

from portal.archive.models import Case
from portal.archive.services import case_create
from portal.core.api import answers
from portal.core.api.views import ApiView, remembers
from portal.core.models import KeptAnswer
from portal.hooks.models import Webhook
from portal.labs.models import ApiToken, Lab, Membership, Role, User
from portal.labs.services import member_set_role, tokens_revoke_of
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


def test_a_refusal_is_remembered_but_not_one_that_may_pass(
    api: APIClient, lab: Lab, annotator: User
) -> None:
    case = case_create(lab=lab, user=annotator, accession="S-1")
    wrong = [post(api, {"accession": ""}, "wrong-key") for _ in range(2)]
    assert [(one.status_code, one["Content-Type"]) for one in wrong] == [
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
    monkeypatch.setattr(answers, "transaction_lock_at_once", lambda name: False)
    refused = post(api, {"accession": "S-9"})
    assert (refused.status_code, refused.json()["code"]) == (409, "request-running")
    assert int(refused["Retry-After"]) > 0
    monkeypatch.undo()
    assert post(api, {"accession": "S-9"}).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_exactly_one_is_carried_out(annotator: User, lab: Lab) -> None:
    """On PostgreSQL the others hear 409 while it runs; on SQLite they wait for it."""
    barrier = threading.Barrier(6)
    said: list[Any] = []

    def send() -> None:
        client = APIClient()
        client.force_authenticate(annotator)
        barrier.wait()
        while True:
            try:
                answer = post(client, {"accession": "S-9"})
            except OperationalError:  # SQLite in memory knows no busy timeout
                time.sleep(0.01)
                continue
            said.append((answer.status_code, answer.json()))
            if answer.status_code != 409:
                break
            assert answer.json()["code"] == "request-running"
            time.sleep(0.01)
        connections.close_all()

    at_once(send, 6)
    done = [body for status, body in said if status == 201]
    assert len(done) == 6 and all(body == done[0] for body in done)
    assert Case.objects.filter(lab=lab).count() == 1


def test_who_dies_between_effect_and_answer_did_nothing(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise SystemExit

    monkeypatch.setattr("portal.core.api.views.answer_keep", killed)
    with pytest.raises(SystemExit):
        post(api, {"accession": "S-9"})
    assert not Case.objects.filter(accession="S-9").exists()
    monkeypatch.undo()
    assert post(api, {"accession": "S-9"}).status_code == 201


def test_a_large_answer_is_not_kept_but_that_it_was_given_is(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "LARGEST_BYTES", 10)
    assert post(api, {"accession": "S-9"}).status_code == 201
    again = post(api, {"accession": "S-9"})
    assert (again.status_code, again.json()["code"]) == (409, "answer-not-kept")
    assert again.json()["answered_status"] == 201
    assert Case.objects.filter(accession="S-9").count() == 1


def test_what_is_kept_tells_nobody_anything(client: Any, annotator: User, settings: Any) -> None:
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
    (row,) = KeptAnswer.objects.all()
    assert "tess_" not in row.body and KEY not in row.body + row.name
    settings.SECRET_KEY = "another of at least fifty characters, as production wants"
    client.force_login(annotator)
    gone = client.post(
        "/api/v1/tokens/", body, content_type="application/json", headers={"Idempotency-Key": KEY}
    )
    assert gone.json()["code"] == "answer-not-kept"


def test_answers_go_after_a_day_with_the_membership_and_with_an_erasure(
    api: APIClient, annotator: User
) -> None:
    assert post(api, {"accession": "S-9"}).status_code == 201
    answers.answers_forget()
    assert post(api, {"accession": "S-9"}).json()["code"] == "answer-not-kept"
    KeptAnswer.objects.update(created_at=timezone.now() - answers.KEPT + timedelta(minutes=1))
    assert answers.answers_sweep() == 0
    KeptAnswer.objects.update(created_at=timezone.now() - answers.KEPT)
    assert post(api, {"accession": "S-9"}).json()["code"] == "accession-taken", "a new request"
    assert answers.answers_sweep() == 1
    assert post(api, {"accession": "S-11"}).status_code == 201
    tokens_revoke_of(annotator)
    gone = post(api, {"accession": "S-11"})
    assert gone.json()["code"] == "answer-not-kept", "told no more, and not done twice"
    assert KeptAnswer.objects.get().body == ""


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.VIEWER])
def test_who_may_less_is_shown_no_answer_from_before(
    api_as: Any, lab: Lab, manager: User, role: Role
) -> None:
    other = User.objects.create_user("second@example.com")
    membership = Membership.objects.create(lab=lab, user=other, role=Role.MANAGER)
    api, hook = api_as(other), {"name": "LIS", "url": "https://lis.example/"}
    made = post(api, hook, path="/api/v1/webhooks/")
    assert made.json()["secret"]
    member_set_role(membership, role=role, by=manager)
    again = post(api, hook, path="/api/v1/webhooks/")
    assert (again.status_code, again.json()["code"]) == (409, "answer-not-kept")
    assert made.json()["secret"] not in again.content.decode()
    assert Webhook.objects.count() == 1, "it is not carried out again either"


def test_who_may_more_or_the_same_keeps_their_answers(
    api: APIClient, lab: Lab, annotator: User
) -> None:
    membership = Membership.objects.get(lab=lab, user=annotator)
    assert post(api, {"accession": "S-9"}).status_code == 201
    for role in (Role.ANNOTATOR, Role.REVIEWER):
        member_set_role(membership, role=role)
        assert post(api, {"accession": "S-9"})["Idempotency-Replayed"] == "true"


def test_every_post_of_the_api_takes_a_key_or_says_why_not() -> None:
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
    by_themselves = sorted(view.__name__ for view in views if view.keeps_keys)
    assert by_themselves == ["CanvasRoiFileApi", "RoiApi", "RoiBulkApi"]
    apart = sorted(view.__name__ for view in views if view.works_apart)
    assert apart == ["InvitationViewSet", "LearningViewSet", "ReportViewSet"]
    assert all(remembers(view()) for view in views if not view.takes_no_key and not view.keeps_keys)


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

"""Nobody without an account leaves a row of a session; whoever signs in gets one."""

from __future__ import annotations

import secrets
import time
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.test import Client

from portal.labs.models import BrowserSession, User
from portal.labs.services.factors import passkey_challenge_spend
from portal.labs.session_store import GUEST_LIFE_S, SessionStore
from tests.threads import run_async

pytestmark = pytest.mark.django_db
COOKIE = settings.SESSION_COOKIE_NAME


def saved(values: dict[str, Any]) -> SessionStore:
    store = SessionStore()
    store.update(values)
    store.save()
    return store


def test_values_of_a_guest_are_only_in_the_cookie() -> None:
    store = saved({"invitation": "secret"})
    assert not Session.objects.exists()
    assert SessionStore(store.session_key)["invitation"] == "secret"


def test_a_person_has_a_row_and_an_opaque_key() -> None:
    store = saved({SESSION_KEY: "1"})
    assert Session.objects.get().session_key == store.session_key
    assert SessionStore(store.session_key)[SESSION_KEY] == "1"
    store["more"] = 2
    store.save()
    assert Session.objects.count() == 1


@pytest.mark.parametrize("change", ["{}x", "x{}", "a:b:c", ":", ""])
def test_a_forged_cookie_is_empty(change: str) -> None:
    key = saved({"invitation": "secret"}).session_key
    assert SessionStore(change.format(key)).load() == {}


def test_a_forged_cookie_does_not_sign_in(viewer: User) -> None:
    store = saved({"_auth_user_backend": "x"})
    client = Client()
    client.cookies[COOKIE] = str(store.session_key)
    assert client.get("/account/tokens/").status_code == 302


def test_a_guests_cookie_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    key = saved({"invitation": "secret"}).session_key
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + GUEST_LIFE_S + 1)
    assert SessionStore(key).load() == {}


def test_too_long_values_are_dropped_and_the_cookie_stays_small() -> None:
    store = saved({"invitation": secrets.token_urlsafe(9000)})
    assert len(str(store.session_key)) < 4000
    assert SessionStore(store.session_key).load() == {}


def test_signing_in_preserves_guest_values_and_signing_out_deletes_the_row(viewer: User) -> None:
    client = Client()
    client.get("/invitation/a-secret/")
    guest = client.cookies[COOKIE].value
    client.post("/accounts/login/", {"login": viewer.email, "password": "correct horse battery"})
    key = client.cookies[COOKIE].value
    assert key != guest and client.session["invitation"] == "a-secret"
    assert Session.objects.get().session_key == BrowserSession.objects.get().session_key == key
    client.post("/accounts/logout/")
    assert not Session.objects.exists()


def test_a_row_is_deleted_when_its_session_becomes_a_guests() -> None:
    store = saved({SESSION_KEY: "1", "invitation": "secret"})
    del store[SESSION_KEY]
    store.save()
    assert not Session.objects.exists()
    assert SessionStore(store.session_key)["invitation"] == "secret"


def test_an_answer_of_a_passkey_works_once(viewer: User) -> None:
    key = Authenticator.objects.create(user_id=viewer.pk, type="webauthn", data={"name": "Key"})
    assert passkey_challenge_spend(key, "first")
    assert not passkey_challenge_spend(key, "first")
    assert passkey_challenge_spend(key, "second")
    key.refresh_from_db()
    assert key.data["name"] == "Key"


def test_asynchronous_views_get_the_same() -> None:
    async def guest_values() -> Any:
        store = SessionStore()
        await store.aset("invitation", "secret")
        await store.asave()
        return await SessionStore(store.session_key).aget("invitation")

    assert run_async(guest_values()) == "secret"

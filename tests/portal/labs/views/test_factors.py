from __future__ import annotations

import json
import re
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.core.cache import cache
from django.test import Client

from portal.audit.models import AuditEntry
from portal.labs import selectors
from portal.labs.models import TokenScope, User
from portal.labs.services.links import link_make
from portal.labs.services.tokens import token_create
from tests.clients import client_of

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
LOGIN, FACTORS, CASES = "/accounts/login/", "/accounts/factors/", "/cases/"
SECOND, ADD = f"{FACTORS}authenticate/", f"{FACTORS}totp/add/"

BROKEN = ["", "{", "[]", "{}", "7", '{"id": 1}', '{"id": "YQ", "rawId": "YQ"}']
BROKEN += [
    json.dumps({"id": "YQ", "rawId": "YQ", "type": "public-key", "response": response})
    for response in (
        {},
        {"userHandle": 3},
        {
            "clientDataJSON": "YQ",
            "attestationObject": "YQ",
            "authenticatorData": "YQ",
            "signature": "YQ",
            "userHandle": "YQ",
        },
    )
]


@pytest.fixture(autouse=True)
def forget_rate_limits() -> None:
    cache.clear()


def code_of(secret: str, step: int = 0) -> str:
    return str(format_hotp_value(hotp_value(secret, int(auth.time.time()) // 30 + step)))


@pytest.fixture(autouse=True)
def _frozen_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freeze the clock of the codes, which change every 30 s."""
    now = time.time()
    monkeypatch.setattr(auth, "time", SimpleNamespace(time=lambda: now))


def sign_in(user: User) -> Client:
    client = Client()
    client.post(LOGIN, {"login": user.email, "password": PASSWORD})
    return client


def confirm(client: Client) -> None:
    assert client.post("/accounts/reauthenticate/", {"password": PASSWORD}).status_code == 302


def app_added(client: Client) -> tuple[str, list[str]]:
    """The app's secret and the recovery codes, after the person added one."""
    confirm(client)
    shown = re.search(r"mono\">((?:[A-Z2-7]{4} ?){8})<", client.get(ADD).content.decode())
    assert shown is not None
    secret = shown[1].replace(" ", "")
    answer = client.post(ADD, {"code": code_of(secret)}, follow=True)
    return secret, re.findall(r"\b\d{8}$", codes_in(answer), re.M)


def codes_in(answer: Any) -> str:
    """Text of the box of recovery codes."""
    text: str = answer.content.decode()
    return text.partition('id="codes">')[2].partition("</pre>")[0]


def is_in(client: Client) -> bool:
    return client.get(CASES).status_code == 200


def test_the_password_is_not_enough_after_an_app_was_added(viewer: User) -> None:
    secret, _ = app_added(sign_in(viewer))
    client = sign_in(viewer)
    assert not is_in(client)
    assert client.post(SECOND, {"code": "000000"}).status_code == 200
    assert not is_in(client)
    assert client.post(SECOND, {"code": code_of(secret, 1)}).status_code == 302
    assert is_in(client)


def test_a_code_works_once(viewer: User) -> None:
    secret, _ = app_added(sign_in(viewer))
    code = code_of(secret, 1)
    assert sign_in(viewer).post(SECOND, {"code": code}).status_code == 302
    again = sign_in(viewer)
    assert again.post(SECOND, {"code": code}).status_code == 200
    assert not is_in(again)


def test_a_code_does_not_work_again_when_the_cache_has_forgotten_it(
    viewer: User, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        secret, _ = app_added(sign_in(viewer))
    came_in = []
    for step in (0, 1, 1, 0):  # the first of them added the app
        cache.clear()  # it keeps a code for half a minute; one is right for a minute and a half
        client = sign_in(viewer)
        client.post(SECOND, {"code": code_of(secret, step)})
        came_in.append(is_in(client))
    assert came_in == [False, True, False, False]


def test_guessing_codes_ends_after_a_few(viewer: User) -> None:
    secret, _ = app_added(sign_in(viewer))
    client = sign_in(viewer)
    for _ in range(6):
        client.post(SECOND, {"code": "000000"})
    answer = client.post(SECOND, {"code": code_of(secret, 1)})
    assert "Too many failed attempts" in answer.content.decode()
    assert not is_in(client)


def test_recovery_codes_are_shown_once_and_work_once(viewer: User) -> None:
    mine = sign_in(viewer)
    _, codes = app_added(mine)
    assert len(codes) == 10
    assert codes[0] not in mine.get(f"{FACTORS}codes/").content.decode()
    client = sign_in(viewer)
    assert client.post(SECOND, {"code": codes[0]}).status_code == 302 and is_in(client)
    again = sign_in(viewer)
    assert again.post(SECOND, {"code": codes[0]}).status_code == 200 and not is_in(again)


def test_a_one_time_link_requires_the_second_factor_as_well(viewer: User) -> None:
    app_added(sign_in(viewer))
    from portal.labs.models import Purpose

    client = Client()
    client.get(f"/link/{link_make(Purpose.SIGN_IN, user=viewer)}/")
    assert client.post("/link/").headers["Location"] == SECOND
    assert not is_in(client)


def test_the_secret_of_the_app_is_not_in_the_database(viewer: User) -> None:
    secret, _ = app_added(sign_in(viewer))
    rows = json.dumps(list(Authenticator.objects.values_list("data", flat=True)))
    assert secret not in rows
    assert Authenticator.objects.get(type="totp").wrap().validate_code(code_of(secret, -1))


def test_adding_and_removing_require_reauthentication(viewer: User) -> None:
    client = sign_in(viewer)
    for path in ("totp/add/", "passkeys/add/"):
        assert "/accounts/reauthenticate/" in client.get(f"{FACTORS}{path}").headers["Location"]
    app_added(client)
    other = client_of(viewer)
    assert "reauthenticate" in other.post(f"{FACTORS}totp/remove/").headers["Location"]
    assert Authenticator.objects.filter(type="totp").exists()
    client.post(f"{FACTORS}totp/remove/")
    assert not Authenticator.objects.exists()  # the recovery codes went with it


def test_the_audit_log_has_added_failed_and_removed_factors(
    viewer: User, django_capture_on_commit_callbacks: Any
) -> None:
    mine = sign_in(viewer)
    with django_capture_on_commit_callbacks(execute=True):
        app_added(mine)
        sign_in(viewer).post(SECOND, {"code": "000000"})
        mine.post(f"{FACTORS}totp/remove/")
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {f"account.factor_{word}" for word in ("added", "failed", "removed")} <= actions


@pytest.mark.parametrize("text", BROKEN)
def test_an_invalid_passkey_does_not_sign_in(viewer: User, text: str) -> None:
    client = Client()
    client.get("/accounts/passkey/", headers={"Accept": "application/json"})
    assert client.post("/accounts/passkey/", {"credential": text}).headers["Location"] == LOGIN
    assert not is_in(client)
    mine = sign_in(viewer)
    confirm(mine)
    mine.get(f"{FACTORS}passkeys/add/")
    answer = mine.post(f"{FACTORS}passkeys/add/", {"credential": text})
    assert answer.status_code == 200 and 'role="alert"' in answer.content.decode()
    assert not Authenticator.objects.exists()


def test_a_person_without_a_required_factor_sees_only_its_pages(
    viewer: User, manager: User, settings: Any
) -> None:
    settings.TESSERA_REQUIRE_SECOND_FACTOR = "managers"
    assert is_in(sign_in(viewer))
    client = sign_in(manager)
    assert client.get(CASES).headers["Location"] == FACTORS
    refused = client.get("/api/v1/cases/")
    assert (refused.status_code, refused.json()["code"]) == (403, "second-factor-missing")
    app_added(client)
    assert is_in(client) and client.get("/api/v1/cases/").status_code == 200


def test_the_requirement_applies_to_people_and_not_to_tokens(viewer: User, settings: Any) -> None:
    settings.TESSERA_REQUIRE_SECOND_FACTOR = "all"
    assert not is_in(sign_in(viewer))
    _, secret = token_create(
        viewer, name="LIS", scope=TokenScope.READ, expires_in=timedelta(days=1)
    )
    answer = Client().get("/api/v1/cases/", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 200


def test_recovery_codes_are_no_second_factor(viewer: User, settings: Any) -> None:
    settings.TESSERA_REQUIRE_SECOND_FACTOR = "all"
    Authenticator.objects.create(user=viewer, type="recovery_codes", data={})
    assert selectors.second_factor_missing(viewer)


def test_removing_the_last_leads_back_to_set_one_up(viewer: User, settings: Any) -> None:
    settings.TESSERA_REQUIRE_SECOND_FACTOR = "all"
    client = sign_in(viewer)
    app_added(client)
    client.post(f"{FACTORS}totp/remove/")
    assert client.get(CASES).headers["Location"] == FACTORS


def test_without_the_requirement_a_page_needs_no_more_queries(
    viewer: User, settings: Any, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(0):
        assert not selectors.second_factor_missing(viewer)

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.sessions.models import Session
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from portal.core import environment
from portal.labs.models import Lab, Membership, Role, User
from portal.labs.services.invitations import invitation_accept_new, invitation_create
from portal.labs.services.proof import email_prove
from tests.clients import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
BEGIN = "/accounts/oidc/lab/"
LOGIN = "/accounts/login/"


class Provider:
    """An OpenID Connect provider over real HTTP; says of whoever comes what the test sets."""

    def __init__(self) -> None:
        self.claims: dict[str, Any] = {}
        self.verifiers: list[str] = []
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answers = {
                    "/.well-known/openid-configuration": provider.configuration(),
                    "/userinfo": provider.claims,
                    "/jwks": provider.keys(),
                }
                self.answer(answers[self.path])

            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                provider.verifiers += form.get("code_verifier", [])
                token = {"access_token": "t", "token_type": "Bearer"}
                self.answer(token | {"id_token": provider.id_token()})

            def answer(self, body: Any) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *args: Any) -> None:
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def configuration(self) -> dict[str, Any]:
        ends = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
        document: dict[str, Any] = {f"{k}_endpoint": f"{self.url}/{v}" for k, v in ends.items()}
        document["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
        return document | {"issuer": self.url, "jwks_uri": f"{self.url}/jwks"}

    def keys(self) -> dict[str, Any]:
        public = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [dict(public) | {"kid": "1", "alg": "RS256", "use": "sig"}]}

    def id_token(self) -> str:
        times = {"iat": int(time.time()), "exp": int(time.time()) + 60}
        claims = {"iss": self.url, "aud": "tessera"} | times | self.claims
        return jwt.encode(claims, self.key, algorithm="RS256", headers={"kid": "1"})


@pytest.fixture
def provider(settings: Any) -> Iterator[Provider]:
    made = Provider()
    app = {"provider_id": "lab", "name": "Clinic", "client_id": "tessera", "secret": "s"}
    apps = [app | {"settings": {"server_url": made.url}}]
    settings.TESSERA_OIDC = apps
    settings.SOCIALACCOUNT_PROVIDERS = {
        "openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": apps}
    }
    yield made
    made.server.shutdown()
    made.server.server_close()


def come(provider: Provider, client: Client | None = None, query: str = "", **claims: Any) -> Any:
    """Go to the provider and come back with its word; the answer and the browser."""
    provider.claims = {"sub": "42", "email_verified": True} | claims
    client = client or Client()
    away = client.get(BEGIN + query).headers["Location"]
    assert away.startswith(f"{provider.url}/authorize")
    state = parse_qs(urlsplit(away).query)["state"][0]
    return client.get(f"{BEGIN}callback/", {"code": "c", "state": state}), client


def is_in(client: Client) -> bool:
    return client.get("/cases/").status_code == 200


def test_the_sign_in_page_offers_the_service(provider: Provider) -> None:
    page = Client().get(LOGIN).content.decode()
    assert "Sign in with Clinic" in page and BEGIN in page


def test_a_verified_address_with_an_account_gets_in(provider: Provider, viewer: User) -> None:
    for _ in range(2):  # the first time and later
        answer, client = come(provider, email="Viewer@North.Example")
        assert answer.status_code == 302 and is_in(client)
    assert SocialAccount.objects.get().user == viewer
    viewer.refresh_from_db()
    assert viewer.email_proven_at and len(provider.verifiers) == 2


@pytest.mark.parametrize("expected", [False, None, "false", "true", 1, 0])
def test_an_address_that_is_not_verified_is_none(
    provider: Provider, viewer: User, expected: Any
) -> None:
    answer, client = come(provider, email=viewer.email, email_verified=expected)
    assert answer.headers["Location"] == LOGIN and not is_in(client)
    assert not SocialAccount.objects.exists()


def test_a_refused_person_gets_no_session(provider: Provider, viewer: User) -> None:
    _, client = come(provider, email="else@north.example")
    client.get(f"{BEGIN}callback/", {"code": "c", "state": "invented"})
    assert not Session.objects.exists()


def test_strangers_of_the_directory_get_no_account(provider: Provider, viewer: User) -> None:
    answer, client = come(provider, email="else@north.example")
    assert answer.headers["Location"] == LOGIN and not is_in(client)
    assert User.objects.count() == 1


def test_an_invited_person_gets_an_account_and_no_lab(provider: Provider, manager: User) -> None:
    lab = Lab.objects.get()
    invitation_create(lab, email="new@north.example", role=Role.VIEWER, by=manager)
    _, client = come(provider, email="new@north.example")
    assert is_in(client)
    assert not Membership.objects.filter(user__email="new@north.example").exists()


def test_an_address_reassigned_to_another_person_gives_no_access(
    provider: Provider, viewer: User
) -> None:
    come(provider, email=viewer.email)
    _, client = come(provider, email=viewer.email, sub="43")
    assert not is_in(client)


def test_a_person_with_a_new_address_remains_the_same_account(
    provider: Provider, viewer: User, manager: User
) -> None:
    come(provider, email=viewer.email)
    _, client = come(provider, email=manager.email)
    assert not is_in(client)


@pytest.mark.parametrize("change", [{"is_active": False}, {"is_service": True}])
def test_closed_accounts_and_service_accounts_stay_out(
    provider: Provider, viewer: User, change: dict[str, bool]
) -> None:
    User.objects.filter(pk=viewer.pk).update(**change)
    _, client = come(provider, email=viewer.email)
    assert not is_in(client)


def test_another_identity_cannot_be_linked_to_an_account(
    provider: Provider, viewer: User, manager: User
) -> None:
    client = client_of(viewer)
    come(provider, client, "?process=connect", email="else@north.example")
    assert not SocialAccount.objects.exists()


def test_the_second_factor_is_required_as_well(provider: Provider, viewer: User) -> None:
    email_prove(viewer)  # what is added before the first proof ends with it
    Authenticator.objects.create(user=viewer, type="totp", data={"secret": "x"})
    answer, client = come(provider, email=viewer.email)
    assert answer.headers["Location"] == "/accounts/factors/authenticate/" and not is_in(client)


@pytest.mark.parametrize(
    "claims", [{"aud": "another"}, {"iss": "https://else.example"}, {"exp": 1}]
)
def test_a_token_for_somebody_else_is_refused(
    provider: Provider, viewer: User, claims: dict[str, Any]
) -> None:
    answer, client = come(provider, email=viewer.email, **claims)
    assert answer.headers["Location"] == LOGIN and not is_in(client)


def test_an_unsolicited_answer_is_refused(provider: Provider, viewer: User) -> None:
    client = Client()
    answer = client.get(f"{BEGIN}callback/", {"code": "c", "state": "made-up"})
    assert answer.headers["Location"] == LOGIN and not is_in(client)


def test_a_service_that_is_down_is_no_error_of_ours(provider: Provider) -> None:
    provider.server.shutdown()
    provider.server.server_close()
    assert Client().get(BEGIN).headers["Location"] == LOGIN


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"TESSERA_OIDC_CLIENT_SECRET": ""}, "CLIENT_SECRET must be set"),
        ({"TESSERA_OIDC_SERVER": "http://sso.example"}, "https://"),
    ],
)
def test_a_half_configured_service_is_refused_at_start(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], message: str
) -> None:
    good = {"NAME": "Clinic", "SERVER": "https://sso.example/", "CLIENT_ID": "t"}
    for name, value in (good | {"CLIENT_SECRET": "s"}).items():
        monkeypatch.setenv(f"TESSERA_OIDC_{name}", value)
    assert environment.oidc()[0]["settings"] == {"server_url": "https://sso.example"}
    for name, value in changed.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=message):
        environment.oidc()


def test_the_first_sign_in_excludes_the_creator_of_the_account(
    provider: Provider, manager: User
) -> None:
    invitation, _ = invitation_create(
        Lab.objects.get(), email="victim@north.example", role=Role.VIEWER, by=manager
    )
    user, _ = invitation_accept_new(invitation, full_name="V", password="known to another")
    attacker = Client()
    attacker.post(LOGIN, {"login": user.email, "password": "known to another"})
    assert is_in(attacker)
    answer, client = come(provider, email=user.email)
    assert answer.headers["Location"] == "/invitation/"
    assert "choose a new password" in client.get("/invitation/").content.decode()
    assert is_in(client) and not is_in(attacker)
    assert not Membership.objects.filter(user=user).exists()
    attacker.post(LOGIN, {"login": user.email, "password": "known to another"})
    assert not is_in(attacker)

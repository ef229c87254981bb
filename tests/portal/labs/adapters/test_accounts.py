from __future__ import annotations

import re
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.core.cache import cache
from django.test import Client
from django.urls import NoReverseMatch, reverse

from portal.core import environment
from portal.core.mail import mail_flush
from portal.labs.models import Attempt, TokenScope, User
from portal.labs.services.tokens import token_create
from portal.operations.demo.people import PASSWORD, cast
from tests.clients import client_of

pytestmark = pytest.mark.django_db
LOGIN = "/accounts/login/"
RESET = "/accounts/password/reset/"


@pytest.fixture(autouse=True)
def forget_rate_limits() -> None:
    cache.clear()


def sign_in(client: Client, email: str, password: str = "correct horse battery") -> int:
    return client.post(LOGIN, {"login": email, "password": password}).status_code


@pytest.mark.parametrize("email", ["viewer@north.example", "Viewer@North.Example"])
def test_people_sign_in_with_address_and_password(client: Client, viewer: User, email: str) -> None:
    assert sign_in(client, email) == 302
    assert client.get("/account/tokens/").status_code == 200


def test_account_forms_have_labels_in_sentence_case(client: Client, viewer: User) -> None:
    pages = [client.get(LOGIN), client.get(RESET)]
    client.force_login(viewer)
    pages.append(client.get("/accounts/password/change/"))
    labels = [field.label for page in pages for field in page.context["form"].visible_fields()]
    assert len(labels) == 7
    assert all(label == label.capitalize() for label in labels)
    assert all("placeholder" not in page.content.decode() for page in pages)


def test_a_wrong_password_is_refused_without_naming_the_wrong_part(
    client: Client, viewer: User
) -> None:
    answers = {
        client.post(LOGIN, {"login": email, "password": "wrong"}).context["form"].errors.as_text()
        for email in (viewer.email, "nobody@north.example")
    }
    assert len(answers) == 1


def test_guessing_shuts_out_the_guesser_and_not_the_owner(client: Client, viewer: User) -> None:
    for _ in range(6):
        sign_in(client, viewer.email, "wrong")
    response = client.post(LOGIN, {"login": viewer.email, "password": "correct horse battery"})
    assert "Too many failed" in response.content.decode()
    other_client = {"REMOTE_ADDR": "192.0.2.7"}
    owner = {"login": viewer.email, "password": "correct horse battery"}
    assert client.post(LOGIN, owner, **other_client).status_code == 302


def test_a_right_password_does_not_wash_guesses_away(client: Client, viewer: User) -> None:
    for _ in range(4):
        sign_in(Client(), "victim@x.example", "wrong")
        assert sign_in(Client(), viewer.email) == 302
    assert Attempt.objects.count() == 4 * 3


def test_a_known_browser_gets_in_where_others_are_refused(viewer: User) -> None:
    known = Client()
    sign_in(known, viewer.email)
    known.post("/accounts/logout/")
    for _ in range(6):
        sign_in(Client(), viewer.email, "wrong")
    assert sign_in(Client(), viewer.email) == 200  # same address, unknown browser
    assert sign_in(known, viewer.email) == 302
    cookie = known.cookies["tessera_device"]
    assert cookie["httponly"] and cookie["samesite"] == "Lax"


def test_clients_behind_one_proxy_are_distinguished(viewer: User, settings: Any) -> None:
    settings.TESSERA_TRUSTED_PROXIES = 1
    guesser, owner = ({"X-Forwarded-For": address} for address in ("203.0.113.9", "192.0.2.7"))
    for _ in range(6):
        Client().post(LOGIN, {"login": viewer.email, "password": "wrong"}, headers=guesser)
    right = {"login": viewer.email, "password": "correct horse battery"}
    assert Client().post(LOGIN, right, headers=guesser).status_code == 200
    assert Client().post(LOGIN, right, headers=owner).status_code == 302


@pytest.mark.parametrize("sent", ["", "a, b", "203.0.113.9"])
def test_a_forwarded_header_that_does_not_fit_is_no_error(
    viewer: User, settings: Any, sent: str
) -> None:
    settings.TESSERA_TRUSTED_PROXIES = 3
    right = {"login": viewer.email, "password": "correct horse battery"}
    assert Client().post(LOGIN, right, headers={"X-Forwarded-For": sent}).status_code == 302


def test_sign_in_needs_no_cache(viewer: User, settings: Any) -> None:
    """With Redis away: in with the right password, slowed with wrong ones, never an error."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    url = f"redis://127.0.0.1:{port}/0"
    settings.CACHES = {"default": environment.cache(url, folder=Path("/nowhere"))}
    assert sign_in(Client(), viewer.email) == 302
    assert Client().post(RESET, {"email": viewer.email}).status_code == 302
    for _ in range(5):
        assert sign_in(Client(), viewer.email, "wrong") == 200
    answer = Client().post(LOGIN, {"login": viewer.email, "password": "correct horse battery"})
    assert "Too many failed" in answer.content.decode()
    mail_flush()


def sign_in_link() -> str:
    match = re.search(r"https?://testserver(/link/\S+/)", mail.outbox[-1].body)
    assert match
    return match.group(1)


def test_the_owner_proves_by_mail_and_is_in_while_others_guess(viewer: User) -> None:
    for _ in range(6):
        sign_in(Client(), viewer.email, "wrong")
    client = Client()
    client.post("/link/ask/", {"email": viewer.email})
    mail_flush()
    path = sign_in_link()
    client.get(path)
    assert viewer.email in client.get("/link/").content.decode()
    assert client.post("/link/").status_code == 302
    assert client.get("/account/tokens/").status_code == 200
    viewer.refresh_from_db()
    assert viewer.email_proven_at is not None
    assert Client().get(path, follow=True).status_code == 404


def test_requesting_a_link_reveals_no_account(viewer: User) -> None:
    answers = [
        re.sub(
            r'(value|Token"): ?"[^"]*"|value="[^"]*"',
            "",
            Client().post("/link/ask/", {"email": email}).content.decode(),
        )
        for email in (viewer.email, "nobody@north.example")
    ]
    assert answers[0].replace(viewer.email, "") == answers[1].replace("nobody@north.example", "")
    mail_flush()
    assert [message.to for message in mail.outbox] == [[viewer.email]]


def test_link_requests_are_limited(viewer: User) -> None:
    statuses = [Client().post("/link/ask/", {"email": viewer.email}).status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    mail_flush()


def test_an_inactive_person_does_not_get_in(client: Client, viewer: User) -> None:
    User.objects.update(is_active=False)
    sign_in(client, viewer.email)
    assert client.get("/account/tokens/").status_code == 302


@pytest.mark.parametrize("method", ["get", "post"])
def test_sign_up_is_closed(client: Client, db: None, method: str) -> None:
    data = {"email": "me@x.example", "password1": "a long password", "password2": "a long password"}
    response = getattr(client, method)("/accounts/signup/", data)
    assert "Sign-up is closed" in response.content.decode()
    assert not User.objects.exists()


def test_signing_out_ends_the_session(page: Client) -> None:
    assert "Sign out?" in page.get("/accounts/logout/").content.decode()
    page.post("/accounts/logout/")
    assert page.get("/account/tokens/").status_code == 302


def test_a_password_is_changed(page: Client, annotator: User) -> None:
    assert page.get("/accounts/password/change/").status_code == 200
    page.post(
        "/accounts/password/change/",
        {
            "oldpassword": "correct horse battery",
            "password1": "another long one",
            "password2": "another long one",
        },
    )
    annotator.refresh_from_db()
    assert annotator.check_password("another long one")


def test_a_reset_mail_goes_to_accounts_only(client: Client, viewer: User) -> None:
    for email in (viewer.email, "nobody@north.example"):
        response = client.post(RESET, {"email": email}, follow=True)
        assert "Check your e-mail" in response.content.decode()
    mail_flush()
    assert [message.to for message in mail.outbox] == [[viewer.email]]


def test_the_reset_page_states_that_no_mail_is_sent(
    client: Client, db: None, settings: Any
) -> None:
    for url in (RESET, f"{RESET}done/"):
        assert "sends no e-mail" not in client.get(url).content.decode()
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    for url in (RESET, f"{RESET}done/"):
        assert "sends no e-mail" in client.get(url).content.decode()


def reset_link() -> str:
    match = re.search(
        r"https?://testserver(/accounts/password/reset/key/\S+)", mail.outbox[-1].body
    )
    assert match
    return match.group(1)


def choose_by_link(client: Client, link: str, password: str) -> None:
    form = client.get(link, follow=True).redirect_chain[-1][0]
    client.post(form, {"password1": password, "password2": password})


class SilentServer:
    """A mail server that takes the connection and never says a word."""

    def __enter__(self) -> int:
        self.socket = socket.create_server(("127.0.0.1", 0))
        return int(self.socket.getsockname()[1])

    def __exit__(self, *_: object) -> None:
        self.socket.close()


@pytest.mark.parametrize("server", ["none", "down", "silent"])
def test_a_reset_reveals_no_account_when_mail_fails(
    viewer: User, settings: Any, server: str
) -> None:
    smtp, dummy = ("django.core.mail.backends.smtp", "django.core.mail.backends.dummy")
    settings.EMAIL_BACKEND = f"{dummy if server == 'none' else smtp}.EmailBackend"
    with SilentServer() as port:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9 if server == "down" else port
        settings.EMAIL_TIMEOUT = 60  # nobody waits for it: the answers come while it is silent
        answers = []
        for email in (viewer.email, "nobody@north.example"):
            response = Client().post(RESET, {"email": email})
            headers = {k: v for k, v in response.items() if k != "X-Request-ID"}
            cookies = sorted(response.cookies)
            answers.append((response.status_code, headers, response.content, cookies))
    mail_flush()
    assert answers[0] == answers[1]
    assert (answers[0][0], answers[0][1]["Location"]) == (302, f"{RESET}done/")


def test_a_reset_revokes_tokens_and_ends_sessions(
    client: Client, page: Client, annotator: User
) -> None:
    _, secret = token_create(
        annotator, name="LIS", scope=TokenScope.READ, expires_in=timedelta(days=1)
    )
    client = Client()
    client.post(RESET, {"email": annotator.email})
    mail_flush()
    choose_by_link(client, reset_link(), "another long one")
    annotator.refresh_from_db()
    assert annotator.check_password("another long one")
    assert annotator.email_proven_at is not None
    answer = Client().get("/api/v1/me/", headers={"Authorization": f"Bearer {secret}"})
    assert answer.json()["code"] == "token-revoked"
    assert page.get("/account/tokens/").status_code == 302


def test_a_password_change_revokes_tokens_and_other_sessions(page: Client, annotator: User) -> None:
    token, _ = token_create(
        annotator, name="LIS", scope=TokenScope.READ, expires_in=timedelta(days=1)
    )
    other = client_of(annotator)
    change = {
        "oldpassword": "correct horse battery",
        "password1": "another long one",
        "password2": "another long one",
    }
    page.post("/accounts/password/change/", change)
    token.refresh_from_db()
    assert token.revoked_at is not None
    assert page.get("/account/tokens/").status_code == 200
    assert other.get("/account/tokens/").status_code == 302


def test_a_reset_mail_is_ours_and_its_link_works_once(client: Client, viewer: User) -> None:
    client.post(RESET, {"email": viewer.email})
    mail_flush()
    assert mail.outbox[0].subject == "A new password for Tessera"
    link = reset_link()
    choose_by_link(client, link, "another long one")
    assert "no longer works" in Client().get(link).content.decode()


def test_a_used_reset_link_is_reported(client: Client, db: None) -> None:
    response = client.get("/accounts/password/reset/key/1-nonsense/")
    assert "no longer works" in response.content.decode()


def test_a_person_cannot_change_their_address() -> None:
    with pytest.raises(NoReverseMatch):
        reverse("account_email")


@pytest.mark.parametrize(
    "url", [LOGIN, "/accounts/password/reset/", "/accounts/password/reset/done/"]
)
def test_pages_before_signing_in_have_no_navigation(client: Client, db: None, url: str) -> None:
    text = client.get(url).content.decode()
    assert "entrance" in text
    assert 'class="bar"' not in text


@pytest.mark.parametrize(("password", "status"), [("correct horse battery", 302), ("wrong", 200)])
def test_a_user_confirms_their_identity_by_the_password(
    page: Client, password: str, status: int
) -> None:
    assert page.post("/accounts/reauthenticate/", {"password": password}).status_code == status


def test_passwords_of_the_demo_accounts_are_valid() -> None:
    people = cast()
    for user in (people.pathologist, people.endoscopist, people.manager):
        assert sign_in(Client(), user.email, PASSWORD) == 302

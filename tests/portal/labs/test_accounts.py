from __future__ import annotations

import pytest
from django.core import mail
from django.core.cache import cache
from django.test import Client
from django.urls import NoReverseMatch, reverse

from portal.labs.models import User

pytestmark = pytest.mark.django_db
LOGIN = "/accounts/login/"


@pytest.fixture(autouse=True)
def forget_rate_limits() -> None:
    cache.clear()


def sign_in(client: Client, email: str, password: str = "correct horse battery") -> int:
    return client.post(LOGIN, {"login": email, "password": password}).status_code


@pytest.mark.parametrize("email", ["viewer@north.example", "Viewer@North.Example"])
def test_people_sign_in_with_address_and_password(client: Client, viewer: User, email: str) -> None:
    assert sign_in(client, email) == 302
    assert client.get("/account/tokens/").status_code == 200


def test_a_wrong_password_is_refused_without_saying_which_part(
    client: Client, viewer: User
) -> None:
    answers = {
        client.post(LOGIN, {"login": email, "password": "wrong"}).context["form"].errors.as_text()
        for email in (viewer.email, "nobody@north.example")
    }
    assert len(answers) == 1


def test_guessing_is_slowed_down(client: Client, viewer: User) -> None:
    for _ in range(12):
        sign_in(client, viewer.email, "wrong")
    response = client.post(LOGIN, {"login": viewer.email, "password": "correct horse battery"})
    assert "Too many failed" in response.content.decode()


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
        response = client.post("/accounts/password/reset/", {"email": email}, follow=True)
        assert "Check your e-mail" in response.content.decode()
    assert [message.to for message in mail.outbox] == [[viewer.email]]


def test_a_used_up_reset_link_says_so(client: Client, db: None) -> None:
    response = client.get("/accounts/password/reset/key/1-nonsense/")
    assert "no longer works" in response.content.decode()


def test_nobody_changes_their_own_address() -> None:
    with pytest.raises(NoReverseMatch):
        reverse("account_email")


@pytest.mark.parametrize(
    "url", [LOGIN, "/accounts/password/reset/", "/accounts/password/reset/done/"]
)
def test_pages_before_signing_in_stand_alone(client: Client, db: None, url: str) -> None:
    text = client.get(url).content.decode()
    assert "entrance" in text
    assert 'class="bar"' not in text

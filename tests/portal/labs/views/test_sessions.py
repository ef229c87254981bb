from __future__ import annotations

import time
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from portal.labs.models import BrowserSession, User
from portal.labs.services.accounts import user_deactivate
from portal.labs.services.sessions import sessions_sweep

pytestmark = pytest.mark.django_db
SESSIONS = "/account/sessions/"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def sign_in(user: User, agent: str = FIREFOX, address: str = "192.0.2.7") -> Client:
    client = Client(headers={"User-Agent": agent}, REMOTE_ADDR=address)
    form = {"login": user.email, "password": "correct horse battery"}
    assert client.post("/accounts/login/", form).status_code == 302
    return client


def is_in(client: Client) -> bool:
    return client.get(SESSIONS).status_code == 200


def shift(seconds: float, *names: str) -> None:
    """Set time stamps of all sessions to ``seconds`` ago."""
    for row in Session.objects.all():
        store = row.get_session_store_class()(row.session_key)
        for name in names:
            store[name] = time.time() - seconds
        store.save()


def test_a_user_sees_their_sessions(viewer: User, reviewer: User) -> None:
    here = sign_in(viewer)
    sign_in(viewer, "Mozilla/5.0 (Windows NT 10.0) Chrome/140 Safari/537 Edg/140", "198.51.100.4")
    sign_in(reviewer, "curl/8", "203.0.113.1")
    text = here.get(SESSIONS).content.decode()
    for shown in ("Firefox on Linux", "192.0.2.7", "Edge on Windows", "198.51.100.4", "This one"):
        assert shown in text
    assert "curl" not in text
    assert Session.objects.first().session_key not in text


def test_another_session_is_signed_out(viewer: User) -> None:
    here, there = sign_in(viewer), sign_in(viewer)
    other = BrowserSession.objects.exclude(session_key=here.session.session_key).get()
    here.post(f"{SESSIONS}{other.pk}/end/")
    assert is_in(here) and not is_in(there)


def test_all_others_are_signed_out_at_once(viewer: User, reviewer: User) -> None:
    here, *others = (sign_in(viewer) for _ in range(3))
    another_person = sign_in(reviewer)
    assert "2 other browsers" in here.post(f"{SESSIONS}end/", follow=True).content.decode()
    assert is_in(here) and is_in(another_person)
    assert not any(is_in(client) for client in others)


@pytest.mark.parametrize(
    ("names", "seconds", "lasts"),
    [
        (("seen_at",), 3599, True),
        (("seen_at",), 3601, False),
        (("began_at",), 7199, True),
        (("began_at",), 7201, False),
    ],
)
def test_a_session_ends_when_idle_and_in_the_end(
    viewer: User, settings: Any, names: tuple[str, ...], seconds: float, lasts: bool
) -> None:
    settings.TESSERA_SESSION_IDLE_S, settings.SESSION_COOKIE_AGE = 3600, 7200
    client = sign_in(viewer)
    shift(seconds, *names)
    assert is_in(client) == lasts
    assert (client.get("/api/v1/me/").status_code == 200) == lasts


def test_a_session_in_use_is_prolonged_and_written_once_a_minute(
    viewer: User, django_assert_max_num_queries: Any
) -> None:
    client = sign_in(viewer)
    shift(3000, "seen_at")
    assert is_in(client)
    assert time.time() - client.session["seen_at"] < 60
    with django_assert_max_num_queries(3):  # session, person, memberships
        client.get("/api/v1/me/")


def test_a_session_that_is_over_opens_no_tile(viewer: User, settings: Any) -> None:
    from portal.archive.tiles.permits import Credential, user_of_credential

    settings.TESSERA_SESSION_IDLE_S = 3600
    key = sign_in(viewer).session.session_key
    credential = Credential(f"{django_settings.SESSION_COOKIE_NAME}={key}", "")
    assert user_of_credential(credential) == viewer
    shift(3601, "seen_at")
    assert user_of_credential(credential) is None


def test_a_new_password_leaves_only_the_session_that_chose_it(viewer: User) -> None:
    here, there = sign_in(viewer), sign_in(viewer)
    change = {
        "oldpassword": "correct horse battery",
        "password1": "another long one",
        "password2": "another long one",
    }
    here.post("/accounts/password/change/", change)
    assert is_in(here) and not is_in(there)
    assert here.get(SESSIONS).content.decode().count("Firefox on Linux") == 1


def test_a_closed_account_has_no_sessions(viewer: User) -> None:
    client = sign_in(viewer)
    user_deactivate(viewer)
    assert not Session.objects.exists()
    User.objects.update(is_active=True)
    assert not is_in(client)


def test_sessions_that_expired_are_swept(viewer: User) -> None:
    sign_in(viewer)
    Session.objects.update(expire_date=timezone.now())
    assert sessions_sweep() == 1
    assert not Session.objects.exists()


@pytest.mark.parametrize("password", ["viewer@north", "1234567890123", "qwertyuiop", "Ninesigns"])
def test_bad_passwords_are_refused(viewer: User, password: str) -> None:
    client = sign_in(viewer)
    change = {"oldpassword": "correct horse battery", "password1": password, "password2": password}
    assert client.post("/accounts/password/change/", change).status_code == 200
    viewer.refresh_from_db()
    assert viewer.check_password("correct horse battery")

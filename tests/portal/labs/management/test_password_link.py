from __future__ import annotations

import io
import re
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from portal.labs.models import OneTimeLink, TokenScope, User
from portal.labs.services.tokens import token_create

pytestmark = pytest.mark.django_db
CHOSEN = {"password": "another long one", "repeated": "another long one"}


def printed(email: str) -> str:
    out = io.StringIO()
    call_command("password_link", email, stdout=out)
    match = re.search(r"http://127.0.0.1:8000(/link/\S+/)", out.getvalue())
    assert match
    return match.group(1)


def test_the_owner_chooses_a_password_once(viewer: User) -> None:
    token, _ = token_create(viewer, name="x", scope=TokenScope.READ, expires_in=timedelta(days=1))
    path, client = printed(viewer.email.upper()), Client()
    assert client.get(path)["Location"] == "/link/"
    assert viewer.email in client.get("/link/").content.decode()  # looking uses nothing up
    assert client.post("/link/", CHOSEN)["Location"] == "/"
    assert client.get("/account/tokens/").status_code == 200
    viewer.refresh_from_db()
    token.refresh_from_db()
    assert viewer.check_password("another long one")
    assert viewer.email_proven_at is None  # whoever ran the command saw the link
    assert token.revoked_at is not None
    assert Client().get(path, follow=True).status_code == 404


def test_a_bad_password_does_not_use_the_link_up(viewer: User) -> None:
    client = Client()
    client.get(printed(viewer.email))
    bad = client.post("/link/", {"password": "short", "repeated": "short"})
    assert bad.status_code == 400 and "too short" in bad.content.decode()
    assert client.post("/link/", CHOSEN).status_code == 302


@pytest.mark.parametrize("how", ["expired", "inactive", "renewed"])
def test_an_expired_link_is_refused(viewer: User, how: str) -> None:
    path, client = printed(viewer.email), Client()
    client.get(path)
    if how == "expired":
        OneTimeLink.objects.update(expires_at=timezone.now())
    elif how == "inactive":
        User.objects.update(is_active=False)
    else:
        printed(viewer.email)
    assert client.post("/link/", CHOSEN).status_code == 404
    viewer.refresh_from_db()
    assert viewer.check_password("correct horse battery")


def test_an_unknown_person_gets_no_link(viewer: User) -> None:
    with pytest.raises(CommandError, match="account"):
        call_command("password_link", "nobody@north.example")

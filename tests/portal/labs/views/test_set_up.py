from __future__ import annotations

import io
import re

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from portal.core.errors import ConflictError
from portal.labs.models import Membership, OneTimeLink, Role, User
from portal.labs.services.set_up import first_run_finish

pytestmark = pytest.mark.django_db
FORM = {
    "lab": "Pathology North",
    "full_name": "Maya Lind",
    "email": "maya@lab.example",
    "password": "correct horse battery",
    "repeated": "correct horse battery",
}


def printed() -> str:
    out = io.StringIO()
    call_command("first_run", url="http://t.example", stdout=out)
    match = re.search(r"within a day:\n\s+(\S+)\n", out.getvalue())
    return match.group(1) if match else ""


def test_the_token_from_the_log_creates_the_first_lab_and_signs_in(client: Client) -> None:
    token = printed()
    assert "Set up Tessera" in client.get("/set-up/").content.decode()
    response = client.post("/set-up/", FORM | {"token": token}, follow=True)
    assert "The lab is set up" in response.content.decode()
    membership = Membership.objects.get(user__email="maya@lab.example")
    assert (membership.lab.name, membership.role) == ("Pathology North", Role.MANAGER)


@pytest.mark.parametrize("token", ["", "guessed"])
def test_without_the_token_nothing_is_created(client: Client, token: str) -> None:
    printed()
    assert client.post("/set-up/", FORM | {"token": token}).status_code == 400
    assert not User.objects.exists()


def test_the_last_token_printed_counts(client: Client) -> None:
    first, second = printed(), printed()
    assert client.post("/set-up/", FORM | {"token": first}).status_code == 400
    assert client.post("/set-up/", FORM | {"token": second}).status_code == 302


def test_a_token_older_than_a_day_is_refused(client: Client) -> None:
    token = printed()
    OneTimeLink.objects.update(expires_at=timezone.now())
    assert client.post("/set-up/", FORM | {"token": token}).status_code == 400
    assert not User.objects.exists()


def test_a_token_is_refused_when_an_account_exists() -> None:
    token = printed()
    User.objects.create_user("other@lab.example", password="correct horse battery")
    with pytest.raises(ConflictError, match="set up"):
        first_run_finish(
            token,
            lab_name="Pathology North",
            email="maya@lab.example",
            full_name="Maya Lind",
            password="correct horse battery",
        )
    assert not Membership.objects.exists()


def test_a_mistake_does_not_use_the_token_up(client: Client) -> None:
    token = printed()
    short = {"token": token, "password": "short", "repeated": "short"}
    response = client.post("/set-up/", FORM | short)
    assert response.status_code == 400 and "too short" in response.content.decode()
    assert client.post("/set-up/", FORM | {"token": token}).status_code == 302


def test_there_is_no_set_up_once_an_account_exists(client: Client) -> None:
    token = printed()
    User.objects.create_user("first@lab.example", "x")
    assert printed() == ""
    assert client.get("/set-up/").status_code == 404
    assert client.post("/set-up/", FORM | {"token": token}).status_code == 404


def test_the_sign_in_page_links_to_set_up_only_without_accounts(client: Client) -> None:
    assert "/set-up/" in client.get("/accounts/login/").content.decode()
    User.objects.create_user("first@lab.example", "x")
    assert "/set-up/" not in client.get("/accounts/login/").content.decode()

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from portal.labs.models import Invitation, Lab, Membership, Role, User

pytestmark = pytest.mark.django_db
MANAGER = "maya@lab.example"


def setup_lab(*flags: str) -> str:
    out = io.StringIO()
    call_command("setup_lab", "--lab", "Pathology North", "--manager", MANAGER, *flags, stdout=out)
    return out.getvalue()


def test_the_command_prints_a_link_by_which_the_manager_chooses_a_password() -> None:
    match = re.search(
        r"^https://t\.example(/invitation/\S+/)$", setup_lab("--url", "https://t.example"), re.M
    )
    assert match
    client = Client()
    client.get(match.group(1))
    account = {"full_name": "Maya", "password": "chosen by myself", "repeated": "chosen by myself"}
    client.post("/invitation/", account)
    assert Membership.objects.get(user__email=MANAGER).role == Role.MANAGER
    assert client.get("/lab/").status_code == 200


def test_a_password_comes_from_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery\n"))
    assert "can sign in" in setup_lab("--password-stdin")
    assert User.objects.get().check_password("correct horse battery")


def test_a_password_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSERA_SETUP_PASSWORD", "correct horse battery")
    setup_lab()
    assert User.objects.get().check_password("correct horse battery")


@pytest.mark.parametrize("password", ["short\n", "password123\n", "\n"])
def test_a_weak_password_creates_nothing(monkeypatch: pytest.MonkeyPatch, password: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(password))
    with pytest.raises(CommandError):
        setup_lab("--password-stdin")
    assert not Lab.objects.exists() and not User.objects.exists()


def test_no_flag_takes_a_password() -> None:
    with pytest.raises(CommandError, match="unrecognized"):
        setup_lab("--password", "x")


def test_an_account_that_exists_accepts_by_itself(stranger: User, settings: Any) -> None:
    out = io.StringIO()
    call_command("setup_lab", "--lab", "New", "--manager", stranger.email, stdout=out)
    assert Invitation.objects.get().email == stranger.email
    assert not Membership.objects.filter(lab__slug="new").exists()


def test_a_second_lab_of_the_name_is_refused(lab: Lab) -> None:
    with pytest.raises(CommandError, match="already"):
        call_command("setup_lab", "--lab", "North", "--manager", MANAGER)
    assert not Invitation.objects.exists()

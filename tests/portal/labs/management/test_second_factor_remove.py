from __future__ import annotations

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import CommandError, call_command
from django.test import Client

from portal.labs.models import User
from tests.clients import client_of

pytestmark = pytest.mark.django_db


def test_a_user_who_lost_every_factor_signs_in_by_password_again(viewer: User) -> None:
    Authenticator.objects.create(user=viewer, type="totp", data={"secret": "x"})
    before = client_of(viewer)
    call_command("second_factor_remove", viewer.email.upper())
    assert not Authenticator.objects.exists()
    assert before.get("/cases/").status_code == 302  # signed out everywhere
    client = Client()
    form = {"login": viewer.email, "password": "correct horse battery"}
    client.post("/accounts/login/", form)
    assert client.get("/cases/").status_code == 200


def test_a_missing_second_factor_is_reported(viewer: User) -> None:
    with pytest.raises(CommandError, match="factor"):
        call_command("second_factor_remove", viewer.email)

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core import mail
from django.test import Client

from portal.core.errors import ConflictError, ForbiddenError, InvalidInputError
from portal.core.mail import mail_flush
from portal.labs import services
from portal.labs.models import ApiToken, Lab, Membership, Role, User

pytestmark = pytest.mark.django_db
PROGRAMS = "/lab/programs/"


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def program(lab: Lab, manager: User) -> Membership:
    return services.program_create(lab, name="LIS export", role=Role.ANNOTATOR, by=manager)


def made_token(manager: User, program: Membership, scope: str = "write") -> str:
    form = {"scope": scope, "days": "30"}
    response = browser(manager).post(f"{PROGRAMS}{program.pk}/token/", form)
    assert response.status_code == 201
    assert "no-store" in response["Cache-Control"]
    found = re.search(r'id="secret">([^<]+)<', response.content.decode())
    assert found
    return found.group(1)


def ask(secret: str, path: str = "/api/v1/me/", method: str = "get", **body: Any) -> Any:
    call = getattr(Client(headers={"Authorization": f"Bearer {secret}"}), method)
    return call(path, body, content_type="application/json")


def test_a_manager_makes_a_program_with_a_token_of_its_own(lab: Lab, manager: User) -> None:
    client = browser(manager)
    client.post(PROGRAMS, {"name": "LIS export", "role": "annotator"})
    program = Membership.objects.get(user__is_service=True)
    secret = made_token(manager, program)
    assert secret not in client.get(PROGRAMS).content.decode()
    body = ask(secret).json()
    assert body["user"]["full_name"] == "LIS export"
    assert [(one["lab"]["slug"], one["role"]) for one in body["memberships"]] == [
        ("north", "annotator")
    ]
    made = ask(secret, "/api/v1/cases/", "post", accession="A-1")
    assert made.status_code == 201
    assert "used" in client.get(PROGRAMS).content.decode()


def test_a_program_cannot_sign_in_by_any_way(
    client: Client, program: Membership, manager: User
) -> None:
    user = program.user
    assert not user.has_usable_password()
    assert authenticate(email=user.email, password="") is None
    client.post("/accounts/password/reset/", {"email": user.email})
    client.post("/link/ask/", {"email": user.email})
    mail_flush()
    assert mail.outbox == []
    user.set_password("correct horse battery")  # even so
    user.save()
    client.post("/accounts/login/", {"login": user.email, "password": "correct horse battery"})
    assert client.get("/account/tokens/").status_code == 302


def test_a_program_is_no_person_of_the_lab(program: Membership, manager: User) -> None:
    assert "LIS export" not in browser(manager).get("/lab/").content.decode()
    with pytest.raises(ConflictError, match="role of a program"):
        services.member_set_role(program, role=Role.MANAGER, by=manager)


def test_who_is_no_manager_has_nothing_to_do_with_programs(
    lab: Lab, program: Membership, reviewer: User
) -> None:
    with pytest.raises(ForbiddenError):
        services.program_create(lab, name="x", role=Role.VIEWER, by=reviewer)
    client = browser(reviewer)
    assert client.get(PROGRAMS).status_code == 403
    for action in ("token", "revoke", "remove"):
        assert client.post(f"{PROGRAMS}{program.pk}/{action}/").status_code == 403


def test_another_labs_program_and_a_person_are_not_found(
    program: Membership, stranger: User, manager: User, viewer: User
) -> None:
    for client, row in (
        (browser(stranger), program),
        (browser(manager), viewer.memberships.get()),
    ):
        for action in ("token", "revoke", "remove"):
            assert client.post(f"{PROGRAMS}{row.pk}/{action}/").status_code == 404


@pytest.mark.parametrize("action", ["revoke", "remove"])
def test_its_tokens_are_revoked(program: Membership, manager: User, action: str) -> None:
    secret = made_token(manager, program)
    browser(manager).post(f"{PROGRAMS}{program.pk}/{action}/")
    assert ask(secret).status_code == 401
    assert ApiToken.objects.get().revoked_at is not None


def test_a_program_never_manages(lab: Lab, manager: User) -> None:
    with pytest.raises(InvalidInputError, match="cannot be a manager"):
        services.program_create(lab, name="x", role=Role.MANAGER, by=manager)
    response = browser(manager).post(PROGRAMS, {"name": "x", "role": "manager"})
    assert response.status_code == 400
    assert not User.objects.filter(is_service=True).exists()


def test_a_program_outlives_who_made_it(lab: Lab, program: Membership, manager: User) -> None:
    secret = made_token(manager, program)
    services.user_deactivate(manager)
    assert ask(secret).status_code == 200

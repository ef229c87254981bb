from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core import mail
from django.test import Client

from portal.core.errors import ConflictError, InvalidInputError
from portal.core.mail import mail_flush
from portal.labs.models import ApiToken, Lab, Membership, Role, User
from portal.labs.services.accounts import user_deactivate
from portal.labs.services.members import member_set_role
from portal.labs.services.service_accounts import service_account_create
from tests.clients import client_of

pytestmark = pytest.mark.django_db
SERVICE_ACCOUNTS = "/lab/service-accounts/"


def browser(user: User) -> Client:
    return client_of(user)


@pytest.fixture
def service_account(lab: Lab, manager: User) -> Membership:
    return service_account_create(lab, name="LIS export", role=Role.ANNOTATOR, by=manager)


def made_token(manager: User, service_account: Membership, scope: str = "write") -> str:
    form = {"scope": scope, "days": "30"}
    response = browser(manager).post(f"{SERVICE_ACCOUNTS}{service_account.pk}/token/", form)
    assert response.status_code == 201
    assert "no-store" in response["Cache-Control"]
    match = re.search(r'id="secret">([^<]+)<', response.content.decode())
    assert match
    return match.group(1)


def request(secret: str, path: str = "/api/v1/me/", method: str = "get", **body: Any) -> Any:
    call = getattr(Client(headers={"Authorization": f"Bearer {secret}"}), method)
    return call(path, body, content_type="application/json")


def test_a_manager_creates_a_service_account_with_a_token(lab: Lab, manager: User) -> None:
    client = browser(manager)
    client.post(SERVICE_ACCOUNTS, {"name": "LIS export", "role": "annotator"})
    service_account = Membership.objects.get(user__is_service=True)
    secret = made_token(manager, service_account)
    assert secret not in client.get(SERVICE_ACCOUNTS).content.decode()
    body = request(secret).json()
    assert body["user"]["full_name"] == "LIS export"
    assert [
        (membership["lab"]["slug"], membership["role"]) for membership in body["memberships"]
    ] == [("north", "annotator")]
    made = request(secret, "/api/v1/cases/", "post", accession="A-1")
    assert made.status_code == 201
    assert "used" in client.get(SERVICE_ACCOUNTS).content.decode()


def test_a_service_account_cannot_sign_in_by_any_way(
    client: Client, service_account: Membership, manager: User
) -> None:
    user = service_account.user
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


def test_a_service_account_is_no_person_of_the_lab(
    service_account: Membership, manager: User
) -> None:
    assert "LIS export" not in browser(manager).get("/lab/").content.decode()
    with pytest.raises(ConflictError, check=lambda error: error.code == "service-account-role"):
        member_set_role(service_account, role=Role.MANAGER, by=manager)


@pytest.mark.parametrize("action", ["revoke", "remove"])
def test_tokens_of_a_revoked_or_removed_service_account_are_refused(
    service_account: Membership, manager: User, action: str
) -> None:
    secret = made_token(manager, service_account)
    browser(manager).post(f"{SERVICE_ACCOUNTS}{service_account.pk}/{action}/")
    assert request(secret).status_code == 401
    assert ApiToken.objects.get().revoked_at is not None


def test_a_service_account_never_manages(lab: Lab, manager: User) -> None:
    with pytest.raises(InvalidInputError, match="manager"):
        service_account_create(lab, name="x", role=Role.MANAGER, by=manager)
    response = browser(manager).post(SERVICE_ACCOUNTS, {"name": "x", "role": "manager"})
    assert response.status_code == 400
    assert not User.objects.filter(is_service=True).exists()


def test_a_service_account_outlives_who_made_it(
    lab: Lab, service_account: Membership, manager: User
) -> None:
    secret = made_token(manager, service_account)
    user_deactivate(manager)
    assert request(secret).status_code == 200

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core import mail
from django.test import Client

from portal.labs.models import Invitation, Lab, Membership, Role, User
from portal.labs.services import proof as services
from tests.clients import client_of

pytestmark = pytest.mark.django_db
NEW = "new@lab.example"
ACCOUNT = {
    "full_name": "Nele Neu",
    "password": "chosen by myself",
    "repeated": "chosen by myself",
}


@pytest.fixture
def without_mail(settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"


def browser(user: User) -> Client:
    return client_of(user)


def invite(manager: User, lab: Lab, email: str = NEW, role: str = "viewer") -> Any:
    return browser(manager).post(f"/lab/{lab.slug}/invitations/", {"email": email, "role": role})


def path_of(text: str) -> str:
    match = re.search(r"https?://testserver(/invitation/[\w-]+/)", text)
    assert match, text[:2000]
    return match.group(1)


def mailed(manager: User, lab: Lab, email: str = NEW) -> str:
    assert invite(manager, lab, email).status_code == 302
    return path_of(mail.outbox[-1].body)


def test_the_link_is_mailed_and_not_shown(lab: Lab, manager: User) -> None:
    secret = mailed(manager, lab).split("/")[2]
    page = browser(manager).get("/lab/").content.decode()
    assert NEW in page and "Sent by e-mail" in page
    assert secret not in page
    assert not User.objects.filter(email=NEW).exists()


def test_without_mail_the_link_is_shown_once_to_the_manager(
    lab: Lab, manager: User, without_mail: None
) -> None:
    response = invite(manager, lab)
    assert response.status_code == 201
    assert "no-store" in response["Cache-Control"]
    text = response.content.decode()
    assert "does not prove" in text
    path = path_of(text)
    assert path not in browser(manager).get("/lab/").content.decode()
    assert Client().get(path, follow=True).status_code == 200


def test_an_unreachable_mail_server_rolls_back_the_invitation(
    lab: Lab, manager: User, settings: Any
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9  # discard: nobody listens
    response = invite(manager, lab)
    assert response.status_code == 201
    assert "did not accept the message" in response.content.decode()
    assert Client().get(path_of(response.content.decode()), follow=True).status_code == 200


def test_a_new_person_chooses_a_password_and_is_a_member(lab: Lab, manager: User) -> None:
    path, client = mailed(manager, lab), Client()
    response = client.get(path)
    assert response["Location"] == "/invitation/"  # the secret is in no further address
    assert "no-store" in response["Cache-Control"]
    assert "Make my account" in client.get("/invitation/").content.decode()
    response = client.post("/invitation/", ACCOUNT, follow=True)
    assert "Welcome to North" in response.content.decode()
    membership = Membership.objects.get(user__email=NEW)
    assert (membership.lab, membership.role) == (lab, Role.VIEWER)
    assert Client().login(email=NEW, password="chosen by myself")
    assert "no longer works" in Client().get(path, follow=True).content.decode()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"repeated": "something else"}, "differ"),
        ({"password": "short", "repeated": "short"}, "too short"),
        ({"password": "password123", "repeated": "password123"}, "too common"),
        ({"password": NEW, "repeated": NEW}, "too similar"),
        ({"full_name": ""}, "required"),
    ],
)
def test_a_bad_password_is_refused_and_the_link_still_works(
    lab: Lab, manager: User, change: dict[str, str], complaint: str
) -> None:
    client = Client()
    client.get(mailed(manager, lab))
    response = client.post("/invitation/", ACCOUNT | change)
    assert response.status_code == 400
    assert complaint in response.content.decode()
    assert not User.objects.filter(email=NEW).exists()
    assert client.post("/invitation/", ACCOUNT).status_code == 302


def test_a_manager_of_another_lab_cannot_take_over_an_account(
    lab: Lab, manager: User, other_lab: Lab, stranger: User, without_mail: None
) -> None:
    """The attack: invite an address with a password of one's own, wait until another lab does."""
    invite(manager, lab, stranger.email, "manager")
    path = path_of(invite(manager, lab, "victim@x.example").content.decode())
    attacker = Client()
    attacker.get(path)
    attacker.post("/invitation/", ACCOUNT)  # an account of the victim's address, by the attacker
    victim = User.objects.get(email="victim@x.example")
    invite(stranger, other_lab, "victim@x.example", "manager")
    assert attacker.get("/lab/?lab=south").status_code == 404
    assert not Membership.objects.filter(user=victim, lab=other_lab).exists()
    page = attacker.get("/invitation/").content.decode()  # no link, no invitation
    assert "no longer works" in page
    attacker.post("/invitation/accept/")
    assert not Membership.objects.filter(user=victim, lab=other_lab).exists()


def test_somebody_with_an_account_joins_by_signing_in_and_accepting(
    lab: Lab, manager: User, stranger: User
) -> None:
    client = Client()
    client.get(mailed(manager, lab, stranger.email))
    text = client.get("/invitation/").content.decode()
    assert "has an account" in text and "Make my account" not in text
    client.post("/invitation/accept/")  # not signed in
    assert not Membership.objects.filter(user=stranger, lab=lab).exists()
    response = client.post(
        "/accounts/login/?next=/invitation/",
        {"login": stranger.email, "password": "correct horse battery"},
        follow=True,
    )
    assert "Do not join" in response.content.decode()
    client.post("/invitation/accept/")
    assert Membership.objects.get(user=stranger, lab=lab).role == Role.VIEWER


def test_a_person_signed_in_to_another_account_gets_a_message(
    lab: Lab, manager: User, viewer: User
) -> None:
    path, client = mailed(manager, lab), browser(viewer)
    assert f"signed in as {viewer.email}" in client.get(path, follow=True).content.decode()
    assert NEW in client.post("/invitation/accept/", follow=True).content.decode()
    assert Invitation.objects.open().exists()


def test_a_new_link_ends_the_old_one(lab: Lab, manager: User) -> None:
    old = mailed(manager, lab)
    invitation = Invitation.objects.get()
    browser(manager).post(f"/lab/invitations/{invitation.pk}/renew/")
    fresh = path_of(mail.outbox[-1].body)
    assert "no longer works" in Client().get(old, follow=True).content.decode()
    assert "Make my account" in Client().get(fresh, follow=True).content.decode()


@pytest.mark.parametrize(
    ("email", "status", "complaint"),
    [("nonsense", 400, "valid email"), ("manager@north.example", 409, "already a member")],
)
def test_a_refused_invitation_redisplays_the_input(
    lab: Lab, manager: User, email: str, status: int, complaint: str
) -> None:
    response = invite(manager, lab, email)
    assert response.status_code == status
    assert complaint in response.content.decode()
    assert f'value="{email}"' in response.content.decode()


def test_the_members_page_marks_unproven_addresses(lab: Lab, manager: User, viewer: User) -> None:
    services.email_prove(manager)
    text = browser(manager).get("/lab/").content.decode()
    assert text.count("Address not confirmed") == 1
    assert "Address not confirmed" not in browser(viewer).get("/lab/").content.decode()


def test_without_mail_no_address_is_marked(lab: Lab, manager: User, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    text = browser(manager).get("/lab/").content.decode()
    assert manager.email in text and "Address not confirmed" not in text

"""With the first proof of an address, whoever made the account without it is out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from allauth.mfa.models import Authenticator
from django.core import mail
from django.test import Client

from portal.audit.models import AuditEntry
from portal.core.mail import mail_flush
from portal.labs.models import (
    ApiToken,
    BrowserSession,
    Delivery,
    Invitation,
    KnownDevice,
    Lab,
    Membership,
    Purpose,
    Role,
    TokenScope,
    User,
)
from portal.labs.services.accounts import password_set
from portal.labs.services.invitations import (
    invitation_accept,
    invitation_accept_new,
    invitation_create,
    invitation_deliver,
)
from portal.labs.services.labs import lab_create
from portal.labs.services.links import link_make, link_take
from portal.labs.services.proof import email_prove
from portal.labs.services.set_up import lab_set_up
from portal.labs.services.sign_in_links import link_use
from portal.labs.services.tokens import token_create

pytestmark = pytest.mark.django_db(transaction=True)
VICTIM = "victim@hospital.example"
PASSWORD = "known to the attacker"


@dataclass
class Attack:
    """All ways that a hostile manager left open into an account made under another's address."""

    user: User
    lab: Lab
    session: Client
    secret: str

    def ways_in(self) -> set[str]:
        names = set()
        if self.session.get("/account/tokens/").status_code == 200:
            names.add("session")
        headers = {"Authorization": f"Bearer {self.secret}"}
        if Client().get("/api/v1/me/", headers=headers).status_code == 200:
            names.add("token")
        client = Client()
        client.post("/accounts/login/", {"login": VICTIM, "password": PASSWORD})
        if "_auth_user_id" in client.session or "account_login" in client.session:
            names.add("password")
        if Authenticator.objects.filter(user_id=self.user.pk).exists():
            names.add("factor")
        if KnownDevice.objects.filter(user=self.user).exists():
            names.add("browser")
        return names


@pytest.fixture
def hostile(lab: Lab) -> Lab:
    """Another lab, whose manager attacks."""
    made = lab_create("Hostile")
    boss = User.objects.create_user("boss@hostile.example", "correct horse battery")
    Membership.objects.create(user=boss, lab=made, role=Role.MANAGER)
    return made


@pytest.fixture
def attack(hostile: Lab) -> Attack:
    boss = User.objects.get(email="boss@hostile.example")
    invitation, _ = invitation_create(hostile, email=VICTIM, role=Role.MANAGER, by=boss)
    Invitation.objects.filter(pk=invitation.pk).update(delivery=Delivery.HAND)
    invitation.refresh_from_db()
    user, _ = invitation_accept_new(invitation, full_name="V", password=PASSWORD)
    session = Client()
    session.post("/accounts/login/", {"login": VICTIM, "password": PASSWORD})
    _, secret = token_create(
        user, name="kept", scope=TokenScope.WRITE, expires_in=timedelta(days=300)
    )
    Authenticator.objects.create(
        user_id=user.pk, type=Authenticator.Type.WEBAUTHN, data={"name": "Key", "credential": {}}
    )
    made = Attack(user, hostile, session, secret)
    assert made.ways_in() >= {"session", "token", "factor", "browser"}
    return made


def by_mailed_link(user: User) -> None:
    secret = link_make(Purpose.SIGN_IN, user=user, is_mailed=True)
    client = Client()
    client.get(f"/link/{secret}/")
    assert client.post("/link/").status_code == 302
    assert client.get("/account/tokens/").status_code == 200


def by_reset(user: User) -> None:
    client = Client()
    client.post("/accounts/password/reset/", {"email": VICTIM})
    mail_flush()
    path = mail.outbox[-1].body.split("testserver")[1].split()[0]
    form = client.get(path, follow=True)
    client.post(
        form.request["PATH_INFO"], {"password1": "my own words", "password2": "my own words"}
    )
    user.refresh_from_db()
    assert user.check_password("my own words")


def by_mailed_invitation(user: User) -> None:
    lab = Lab.objects.get(slug="north")
    invitation, _ = invitation_create(lab, email=VICTIM, role=Role.VIEWER, by=None)
    invitation_deliver(invitation, link="https://x/y")
    invitation.refresh_from_db()
    invitation_accept(invitation, user=user)


WAYS: dict[str, Callable[[User], None]] = {
    "link": by_mailed_link,
    "reset": by_reset,
    "invitation": by_mailed_invitation,
}


@pytest.mark.parametrize("way", WAYS)
def test_the_first_proof_excludes_the_creator_of_the_account(attack: Attack, way: str) -> None:
    WAYS[way](attack.user)
    left = attack.ways_in()
    # Whoever proved by a link is signed in with another browser at the same time.
    assert left <= ({"browser"} if way == "link" else set())
    attack.user.refresh_from_db()
    assert attack.user.email_proven_at is not None
    assert not Membership.objects.filter(user=attack.user, lab=attack.lab).exists()


def test_a_later_proof_removes_nothing(viewer: User) -> None:
    assert email_prove(viewer)
    password_set(viewer, "words of my own")
    token_create(viewer, name="mine", scope=TokenScope.READ, expires_in=timedelta(days=1))
    assert not email_prove(viewer)
    viewer.refresh_from_db()
    assert viewer.check_password("words of my own")
    assert ApiToken.objects.get(user=viewer).is_live


def test_a_new_account_by_a_mailed_invitation_retains_its_password(lab: Lab) -> None:
    invitation, _ = invitation_create(lab, email=VICTIM, role=Role.VIEWER, by=None)
    invitation_deliver(invitation, link="https://x/y")
    invitation.refresh_from_db()
    user, _ = invitation_accept_new(invitation, full_name="V", password="words of my own")
    user.refresh_from_db()
    assert user.check_password("words of my own") and user.email_proven_at is not None
    assert not AuditEntry.objects.filter(action="account.proven").exists()


def test_a_membership_from_before_waits_for_the_owner(attack: Attack) -> None:
    client = Client()
    secret = link_make(Purpose.SIGN_IN, user=attack.user, is_mailed=True)
    client.get(f"/link/{secret}/")
    assert client.post("/link/")["Location"] == "/invitation/"
    page = client.get("/invitation/").content.decode()
    assert "Join Hostile" in page and "choose a new password" in page
    waiting = Invitation.objects.open().get(email=VICTIM)
    assert (waiting.lab, waiting.role) == (attack.lab, Role.MANAGER)
    assert client.post("/invitation/accept/", {"invitation": str(attack.lab.pk)}).status_code == 302
    assert not Membership.objects.filter(user=attack.user).exists()
    client.post("/invitation/accept/", {"invitation": str(waiting.pk)})
    assert Membership.objects.get(user=attack.user).role == Role.MANAGER
    assert client.get("/account/tokens/").status_code == 200


def test_invitations_of_an_unproven_address_are_hidden(attack: Attack, lab: Lab) -> None:
    invitation_create(lab, email=VICTIM, role=Role.VIEWER, by=None)
    assert attack.session.get("/invitation/").status_code == 404
    attack.session.post("/invitation/accept/")
    assert not Membership.objects.filter(user=attack.user, lab=lab).exists()


def test_the_one_who_proves_by_accepting_stays_signed_in_and_all_others_do_not(
    attack: Attack, lab: Lab
) -> None:
    invitation, secret = invitation_create(lab, email=VICTIM, role=Role.VIEWER, by=None)
    invitation_deliver(invitation, link="https://x/y")
    owner = Client()
    Authenticator.objects.all().delete()
    owner.post("/accounts/login/", {"login": VICTIM, "password": PASSWORD})
    owner.get(f"/invitation/{secret}/")
    assert owner.post("/invitation/accept/").status_code == 302
    assert owner.get("/account/tokens/").status_code == 200
    assert attack.ways_in() <= {"browser"}
    assert BrowserSession.objects.filter(user=attack.user).count() == 1


def test_the_owner_and_the_managers_concerned_are_notified(
    attack: Attack, lab: Lab, manager: User
) -> None:
    invitation_create(lab, email=VICTIM, role=Role.VIEWER, by=manager)
    email_prove(attack.user)
    mail_flush()
    assert sorted(message.to[0] for message in mail.outbox) == sorted(
        [VICTIM, "boss@hostile.example", manager.email]
    )
    entries = AuditEntry.objects.filter(action="account.proven")
    assert {entry.lab_id for entry in entries} == {lab.pk, attack.lab.pk}
    kinds = {"password", "tokens", "sessions", "factors", "memberships"}
    assert all(set(entry.details["removed"]) == kinds for entry in entries)


def test_the_person_who_set_up_a_lab_stays_its_manager(lab: Lab) -> None:
    _, _ = lab_set_up("First", email=VICTIM, password="words of my own")
    user = User.objects.get(email=VICTIM)
    email_prove(user)
    assert Membership.objects.get(user=user).role == Role.MANAGER
    assert not user.has_usable_password()


def test_a_forwarded_password_link_removes_passkeys_of_the_attacker(
    attack: Attack,
) -> None:
    secret = link_make(Purpose.PASSWORD, user=attack.user)
    link_use(secret, purpose=Purpose.PASSWORD, password="words of my own")
    attack.user.refresh_from_db()
    assert attack.ways_in() == set()
    assert attack.user.email_proven_at is None


def test_earlier_links_of_the_account_stop_working(attack: Attack) -> None:
    earlier = link_make(Purpose.PASSWORD, user=attack.user)
    by_mailed_link(attack.user)
    assert link_take(earlier, purpose=Purpose.PASSWORD) is None

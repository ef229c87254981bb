from __future__ import annotations

from datetime import timedelta

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from portal.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    TooManyRequestsError,
)
from portal.core.models import Event
from portal.labs import selectors
from portal.labs.models import Attempt, Delivery, Ending, Invitation, Lab, Membership, Role, User
from portal.labs.services.attempts import INVITATIONS, Limit
from portal.labs.services.invitations import (
    invitation_accept,
    invitation_accept_new,
    invitation_create,
    invitation_decline,
    invitation_deliver,
    invitation_renew,
    invitation_revoke,
)
from portal.labs.services.members import member_add, member_remove, member_set_role

pytestmark = pytest.mark.django_db
NEW = "new@lab.example"


@pytest.fixture
def invitation(lab: Lab, manager: User) -> Invitation:
    return invitation_create(lab, email=NEW, role=Role.REVIEWER, by=manager)[0]


def test_an_invitation_makes_no_account_and_no_member(lab: Lab, manager: User) -> None:
    invitation, secret = invitation_create(
        lab, email=" New@Lab.example", role=Role.REVIEWER, by=manager, full_name="Nele"
    )
    assert invitation.email == NEW
    assert not User.objects.filter(email=NEW).exists()
    assert secret not in str(Invitation.objects.values().get())
    assert selectors.invitation_by_secret(secret) == invitation


def test_an_invitation_leaves_an_account_that_exists_as_it_is(
    lab: Lab, manager: User, stranger: User
) -> None:
    before = User.objects.values().get(pk=stranger.pk)
    invitation_create(lab, email=stranger.email, role=Role.MANAGER, by=manager)
    assert User.objects.values().get(pk=stranger.pk) == before
    assert not Membership.objects.filter(lab=lab, user=stranger).exists()


def test_an_address_is_invited_once_at_a_time(
    lab: Lab, manager: User, invitation: Invitation
) -> None:
    with pytest.raises(ConflictError, match="invited"):
        invitation_create(lab, email=NEW, role=Role.VIEWER, by=manager)
    invitation_revoke(invitation, by=manager)
    again, _ = invitation_create(lab, email=NEW, role=Role.VIEWER, by=manager)
    Invitation.objects.filter(pk=again.pk).update(expires_at=timezone.now())
    invitation_create(lab, email=NEW, role=Role.VIEWER, by=manager)
    assert Invitation.objects.open().count() == 1


@pytest.mark.parametrize("email", ["", "nonsense", "a@b@c"])
def test_an_invalid_address_is_not_invited(lab: Lab, manager: User, email: str) -> None:
    with pytest.raises(InvalidInputError, match="valid email"):
        invitation_create(lab, email=email, role=Role.VIEWER, by=manager)


def test_members_are_not_invited(lab: Lab, manager: User, viewer: User) -> None:
    with pytest.raises(ConflictError, match="member"):
        invitation_create(lab, email=viewer.email, role=Role.MANAGER, by=manager)


def test_a_link_works_once(lab: Lab, manager: User) -> None:
    invitation, secret = invitation_create(lab, email=NEW, role=Role.VIEWER, by=manager)
    user, membership = invitation_accept_new(
        invitation, full_name="Nele", password="chosen by myself"
    )
    assert (membership.lab, membership.role, user.full_name) == (lab, Role.VIEWER, "Nele")
    assert user.check_password("chosen by myself")
    assert selectors.invitation_by_secret(secret) is None
    with pytest.raises(ConflictError, match="valid"):
        invitation_accept_new(invitation, full_name="x", password="chosen by another")


@pytest.mark.parametrize("end", ["expire", "revoke", "decline", "renew"])
def test_an_ended_link_is_refused(lab: Lab, manager: User, end: str) -> None:
    invitation, secret = invitation_create(lab, email=NEW, role=Role.VIEWER, by=manager)
    if end == "expire":
        Invitation.objects.update(expires_at=timezone.now())
    elif end == "revoke":
        invitation_revoke(invitation, by=manager)
    elif end == "decline":
        invitation_decline(invitation)
    else:
        fresh = invitation_renew(invitation, by=manager)
        assert selectors.invitation_by_secret(fresh) == invitation
    assert selectors.invitation_by_secret(secret) is None


def test_somebody_else_cannot_use_the_link(invitation: Invitation, stranger: User) -> None:
    with pytest.raises(ForbiddenError, match=NEW):
        invitation_accept(invitation, user=stranger)
    assert Invitation.objects.open().count() == 1


def test_an_account_that_exists_is_not_made_again(lab: Lab, manager: User, stranger: User) -> None:
    invitation, _ = invitation_create(lab, email=stranger.email, role=Role.VIEWER, by=manager)
    with pytest.raises(ConflictError, match="account"):
        invitation_accept_new(invitation, full_name="x", password="taken over by me")
    stranger.refresh_from_db()
    assert stranger.check_password("correct horse battery")
    assert Invitation.objects.open().exists()


def test_mail_proves_the_address(invitation: Invitation) -> None:
    assert invitation_deliver(invitation, link="https://x/y") == Delivery.MAIL
    assert mail.outbox[0].to == [NEW]
    assert "https://x/y" in mail.outbox[0].body
    user, _ = invitation_accept_new(invitation, full_name="N", password="a long one 1")
    assert user.email_proven_at is not None


@pytest.mark.parametrize("backend", ["dummy.EmailBackend", "smtp.EmailBackend"])
def test_a_forwarded_link_proves_no_address(
    invitation: Invitation, settings: object, backend: str
) -> None:
    settings.EMAIL_BACKEND = f"django.core.mail.backends.{backend}"  # type: ignore[attr-defined]
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9  # type: ignore[attr-defined]
    assert invitation_deliver(invitation, link="https://x/y") == Delivery.HAND
    user, _ = invitation_accept_new(invitation, full_name="N", password="a long one 1")
    assert user.email_proven_at is None


def test_a_former_manager_can_no_longer_invite(lab: Lab, manager: User) -> None:
    for number, change in enumerate(
        (
            lambda m: member_set_role(m, role=Role.VIEWER),
            member_remove,
        )
    ):
        leaver = User.objects.create_user(f"leaver{number}@lab.example", "x")
        membership = member_add(lab, user=leaver, role=Role.MANAGER)
        invitation, _ = invitation_create(
            lab, email=f"accomplice{number}@lab.example", role=Role.MANAGER, by=leaver
        )
        change(membership)
        invitation.refresh_from_db()
        assert invitation.ending == Ending.REVOKED


def test_every_step_is_on_record(lab: Lab, manager: User, invitation: Invitation) -> None:
    invitation_renew(invitation, by=manager)
    invitation_revoke(invitation, by=manager)
    events = Event.objects.filter(name__startswith="invitation.", lab_id=lab.id)
    assert [(event.name, event.payload["by"]) for event in events] == [
        ("invitation.created", str(manager.id)),
        ("invitation.renewed", str(manager.id)),
        ("invitation.revoked", str(manager.id)),
    ]


def test_expiry_is_a_week(invitation: Invitation) -> None:
    assert timedelta(days=6) < invitation.expires_at - timezone.now() <= timedelta(days=7)


def test_invitations_of_a_lab_are_limited(
    lab: Lab, manager: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link tells whether its address has an account, and every invitation is a mail."""
    assert (INVITATIONS[0].count, INVITATIONS[1].count) == (100, 300)
    few = Limit(3, timedelta(hours=1))
    monkeypatch.setattr("portal.labs.services.attempts.INVITATIONS", (few,))
    first, _ = invitation_create(lab, email="a@lab.example", role=Role.VIEWER, by=manager)
    invitation_create(lab, email="b@lab.example", role=Role.VIEWER, by=manager)
    invitation_renew(first, by=manager)
    with pytest.raises(TooManyRequestsError):
        invitation_create(lab, email="c@lab.example", role=Role.VIEWER, by=manager)
    with pytest.raises(TooManyRequestsError):
        invitation_renew(first, by=manager)
    assert Invitation.objects.count() == 2
    Attempt.objects.update(at=timezone.now() - few.within)
    invitation_renew(first, by=manager)


def test_too_many_invitations_are_reported_to_the_manager(
    lab: Lab, manager: User, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "portal.labs.services.attempts.INVITATIONS", (Limit(0, timedelta(hours=1)),)
    )
    client.force_login(manager)
    sent = {"email": "a@lab.example", "role": Role.VIEWER, "full_name": ""}
    page = client.post(f"/lab/{lab.slug}/invitations/", sent)
    assert page.status_code == 429 and "Too many invitations at once" in page.content.decode()

"""Writes: invitations to a lab. Each emits an event for the audit log.

Users choose their own password and consent to joining: an invitation is a one-time link, bound to
an address. If it is mailed, only the mailbox sees it; otherwise the manager hands it over, and it
does not prove who owns the address.
"""

from __future__ import annotations

from datetime import timedelta

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone

from portal.core.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from portal.core.mail import mail_make, mail_now
from portal.labs.hashing import secret_make
from portal.labs.models import Delivery, Ending, Invitation, Lab, Membership, Role, User
from portal.labs.rules import require_manager
from portal.labs.services.accounts import password_check, user_create
from portal.labs.services.attempts import invitation_count
from portal.labs.services.invitation_endings import invitation_end, invitation_note
from portal.labs.services.members import member_add
from portal.labs.services.proof import email_prove

LIFETIME = timedelta(days=7)  # over a weekend and a short leave


@transaction.atomic
def invitation_create(
    lab: Lab, *, email: str, role: Role, by: User | None, full_name: str = ""
) -> tuple[Invitation, str]:
    """Invite the owner of an address.

    Emits ``invitation.created``; no account is created or changed.

    Returns:
        The row, and the secret of its link, which is not stored.
    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
        InvalidInputError: not an address.
        ConflictError: already a member, or already invited.
        TooManyRequestsError: the lab has sent too many within an hour, or within a day.

    """
    require_manager(by, lab)
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError as error:
        raise InvalidInputError(" ".join(error.messages)) from None
    if Membership.objects.filter(lab=lab, user__email=email).exists():
        raise ConflictError(f"{email} is already a member of {lab}.", code="already-member")
    _end_the_expired(lab, email)
    secret, sha256 = secret_make()
    invitation, created = Invitation.objects.get_or_create(
        lab=lab,
        email=email,
        ended_at=None,
        defaults={
            "role": role,
            "full_name": full_name.strip(),
            "invited_by": by,
            "sha256": sha256,
            "expires_at": timezone.now() + LIFETIME,
        },
    )
    if not created:
        raise ConflictError(
            f"{email} has already been invited. Send the invitation again, or revoke it first.",
            code="already-invited",
        )
    if by is not None:
        invitation_count(lab_id=lab.pk)
    invitation_note("invitation.created", invitation, by)
    return invitation, secret


@transaction.atomic
def invitation_renew(invitation: Invitation, *, by: User | None) -> str:
    """Replace the link and extend the invitation by a week. Emits ``invitation.renewed``.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
        ConflictError: the invitation has already ended.
        TooManyRequestsError: the lab has sent too many.
    """
    require_manager(by, invitation.lab)
    if by is not None:
        invitation_count(lab_id=invitation.lab_id)
    invitation = _lock_invitation(invitation)
    secret, sha256 = secret_make()
    invitation.sha256, invitation.expires_at = sha256, timezone.now() + LIFETIME
    invitation.delivery = Delivery.NONE.value
    invitation.save(update_fields=["sha256", "expires_at", "delivery", "updated_at"])
    invitation_note("invitation.renewed", invitation, by)
    return secret


def invitation_deliver(invitation: Invitation, *, link: str) -> Delivery:
    """Mail the link; if that fails it is handed over, and no longer proves the address.

    Call after the invitation is committed: a slow mail server then holds no lock.
    """
    message = mail_make(
        "labs/mail/invitation",
        to=invitation.email,
        context={"invitation": invitation, "link": link, "days": LIFETIME.days},
    )
    delivery = Delivery.MAIL if mail_now(message) else Delivery.HAND
    Invitation.objects.filter(pk=invitation.pk).update(delivery=delivery)
    return delivery


@transaction.atomic
def invitation_revoke(invitation: Invitation, *, by: User | None) -> None:
    """Revoke an invitation. Emits ``invitation.revoked``.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
        ConflictError: it has already ended.
    """
    require_manager(by, invitation.lab)
    invitation = _lock_invitation(invitation)
    invitation_end(invitation, ending=Ending.REVOKED, by=by)


@transaction.atomic
def invitation_decline(invitation: Invitation) -> None:
    """Decline an invitation. Emits ``invitation.declined``."""
    invitation = _lock_invitation(invitation)
    invitation_end(invitation, ending=Ending.DECLINED, by=None)


@transaction.atomic
def invitation_accept(invitation: Invitation, *, user: User) -> Membership:
    """Join the lab. Emits ``invitation.accepted`` and ``member.added``.

    A mailed link proves the address; see ``email_prove`` for the access that this ends.

    Raises:
        ForbiddenError: the invitation is for another address.
        ConflictError: it has already ended, or the user is a member already.
    """
    invitation = _lock_invitation(invitation)
    if user.email != invitation.email:
        raise ForbiddenError(
            f"This invitation is for {invitation.email}; you are signed in as {user.email}.",
            code="other-address",
        )
    if invitation.delivery == Delivery.MAIL:
        email_prove(user)
    invitation_end(invitation, ending=Ending.ACCEPTED, by=user)
    return member_add(invitation.lab, user=user, role=Role(invitation.role))


@transaction.atomic
def invitation_accept_new(
    invitation: Invitation, *, full_name: str, password: str
) -> tuple[User, Membership]:
    """Create the invited account with its password, and join the lab.

    Raises:
        InvalidInputError: the password is not acceptable.
        ConflictError: the invitation has already ended, or the address has an account.
    """
    invitation = _lock_invitation(invitation)
    user = user_create(invitation.email, full_name=full_name)
    password_check(password, user)
    membership = invitation_accept(invitation, user=user)
    user.set_password(password)
    user.save(update_fields=["password"])
    return user, membership


def _lock_invitation(invitation: Invitation) -> Invitation:
    """Lock and return the row until the end of the transaction, so that a link works once."""
    invitations = Invitation.objects.select_for_update(of=("self",)).select_related("lab")
    row: Invitation | None = invitations.filter(pk=invitation.pk).first()
    if row is None:
        raise NotFoundError("There is no such invitation.")
    if row.ended_at is not None:
        raise ConflictError("This invitation is no longer valid.", code="invitation-ended")
    return row


def _end_the_expired(lab: Lab, email: str) -> None:
    for invitation in Invitation.objects.open().filter(lab=lab, email=email):
        if invitation.has_expired:
            invitation_end(invitation, ending=Ending.REVOKED, by=None)

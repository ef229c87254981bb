"""Writes: the first proof that a user owns the address of their account.

If no mail is sent, an invitation link is handed over in person, and whoever has it creates the
account. An account with an unproven address may therefore belong to somebody else. The first proof
resets the account for its owner: all earlier access ends, and memberships accepted earlier wait for
the owner's consent.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from functools import partial

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from portal.core.events import event_emit
from portal.core.mail import mail_later, mail_make, mail_works
from portal.labs.hashing import secret_make
from portal.labs.models import (
    ApiToken,
    Ending,
    Invitation,
    Lab,
    Membership,
    OneTimeLink,
    Role,
    User,
)
from portal.labs.services.accounts import factors_remove
from portal.labs.services.attempts import devices_forget
from portal.labs.services.invitation_endings import invitation_note
from portal.labs.services.members import membership_end
from portal.labs.services.sessions import sessions_end_of
from portal.labs.services.tokens import tokens_revoke_of

CONSENT_LIFETIME = timedelta(days=366)
"""Time that a membership waits for the owner's consent, given by signing in."""


@transaction.atomic
def email_prove(user: User, *, has_new_password: bool = False) -> bool:
    """Record that the user owns the address; at the first proof, end all access created before it.

    The password, sessions, known browsers, tokens, second factors, passkeys and one-time links
    end. Memberships by an accepted invitation become open invitations that only the owner can
    accept. Emits ``account.proven`` for each lab concerned, and the user and the managers of
    these labs get a mail. A later proof changes nothing.

    Args:
        has_new_password: The password was chosen in the same step as the proof, and stays.
    Returns:
        Whether any access was ended; ``user.was_reclaimed`` has the same value.
    """
    row = User.objects.select_for_update().get(pk=user.pk)
    user.email_proven_at = row.email_proven_at or timezone.now()
    if row.email_proven_at is not None:
        return False
    user.save(update_fields=["email_proven_at"])
    labs = _labs_concerned(user)
    removed = unproven_access_end(user, has_new_password=has_new_password)
    consents = _accepted_before(user)
    if consents:
        removed.append("memberships")
    if not removed:
        return False
    payload = {"user": str(user.pk), "removed": removed}
    lab_ids: list[uuid.UUID | None] = [lab.pk for lab in labs]
    for lab_id in lab_ids or [None]:
        event_emit("account.proven", lab_id=lab_id, payload=payload)
    for membership in consents:
        _await_consent(membership)
    user.was_reclaimed = True
    _notify(user, labs, [consent.lab for consent in consents])
    return True


@transaction.atomic
def unproven_access_end(user: User, *, has_new_password: bool = False) -> list[str]:
    """End all access to an account. Returns the kinds of access that existed."""
    tokens = ApiToken.objects.filter(user=user, revoked_at=None).count()
    removed = {
        "password": not has_new_password and user.has_usable_password(),
        "tokens": tokens > 0,
        "sessions": sessions_end_of(user) > 0,
        "factors": factors_remove(user) > 0,
    }
    if removed["password"]:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    tokens_revoke_of(user)
    devices_forget(user)
    OneTimeLink.objects.filter(user=user, used_at=None).delete()
    return [kind for kind, was_there in removed.items() if was_there]


def _labs_concerned(user: User) -> list[Lab]:
    """Labs that the account belongs to, and labs that have invited its address."""
    invited = Invitation.objects.open().filter(email=user.email, expires_at__gt=timezone.now())
    members = Membership.objects.filter(user=user)
    concerned = Q(pk__in=members.values("lab_id")) | Q(pk__in=invited.values("lab_id"))
    return list(Lab.objects.filter(concerned).order_by("name", "pk"))


def _accepted_before(user: User) -> list[Membership]:
    """Memberships by an invitation; the first manager of an installation or lab was not invited."""
    accepted = Invitation.objects.filter(email=user.email, ending=Ending.ACCEPTED)
    memberships = Membership.objects.filter(user=user, lab_id__in=accepted.values("lab_id"))
    return list(memberships.select_related("lab", "user"))


def _await_consent(membership: Membership) -> None:
    lab, email = membership.lab, membership.user.email
    membership_end(membership, by=None)
    if Invitation.objects.open().filter(lab=lab, email=email).exists():
        return
    _, sha256 = secret_make()  # nobody knows the secret: no link opens this invitation
    invitation = Invitation.objects.create(
        lab=lab,
        email=email,
        full_name=membership.user.full_name,
        role=membership.role,
        sha256=sha256,
        expires_at=timezone.now() + CONSENT_LIFETIME,
    )
    invitation_note("invitation.created", invitation, None)


def _notify(user: User, labs: list[Lab], waiting: list[Lab]) -> None:
    if not mail_works():
        return
    context = {"user": user, "labs": waiting}
    mails = [mail_make("labs/mail/proven", to=user.email, context=context)]
    for lab in labs:
        managers = Membership.objects.filter(
            lab=lab, role=Role.MANAGER, user__is_active=True, user__is_service=False
        ).exclude(user=user)
        for email in managers.values_list("user__email", flat=True):
            context = {"user": user, "lab": lab, "is_waiting": lab in waiting}
            mails.append(mail_make("labs/mail/proven_member", to=email, context=context))
    for mail in mails:
        transaction.on_commit(partial(mail_later, mail))

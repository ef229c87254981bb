"""Writes: endings of invitations."""

from __future__ import annotations

from django.utils import timezone

from portal.core.events import event_emit
from portal.labs.models import Ending, Invitation, Lab, User


def invitation_end(invitation: Invitation, *, ending: Ending, by: User | None) -> None:
    """End an invitation. Emits ``invitation.accepted``, ``.declined`` or ``.revoked``."""
    invitation.ended_at, invitation.ending = timezone.now(), ending.value
    invitation.save(update_fields=["ended_at", "ending", "updated_at"])
    invitation_note(f"invitation.{ending.value}", invitation, by)


def invitations_revoke_of(inviter: User, *, lab: Lab) -> None:
    """Revoke open invitations by a user who no longer manages the lab."""
    for invitation in Invitation.objects.open().filter(lab=lab, invited_by=inviter):
        invitation_end(invitation, ending=Ending.REVOKED, by=None)


def invitation_note(name: str, invitation: Invitation, by: User | None) -> None:
    """Emit an event of an invitation."""
    event_emit(
        name,
        lab_id=invitation.lab_id,
        payload={
            "invitation": str(invitation.pk),
            "email": invitation.email,
            "role": str(invitation.role),
            "by": str(by.pk) if by else None,
        },
    )

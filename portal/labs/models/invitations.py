"""Invitations to a lab."""

from __future__ import annotations

from typing import Self

from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.utils import timezone

from portal.core.database.names import NameField
from portal.core.models import BaseModel
from portal.labs.models.people import Lab, Membership, Role, User


class Delivery(models.TextChoices):
    """Delivery of the link."""

    NONE = "", "Not delivered"
    MAIL = "mail", "Sent by e-mail"
    HAND = "hand", "Handed over"


class Ending(models.TextChoices):
    """Final state of an invitation."""

    NONE = "", "Open"
    ACCEPTED = "accepted", "Accepted"
    DECLINED = "declined", "Declined"
    REVOKED = "revoked", "Revoked"


class InvitationQuerySet(models.QuerySet["Invitation"]):
    """Invitations; begin every query with ``visible_to``."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Invitations to the labs that the user is an active member of."""
        return self.filter(lab_id__in=Membership.objects.reached_by(user).values("lab_id"))

    def open(self) -> Self:
        """Invitations neither accepted, declined nor revoked; they may have expired."""
        return self.filter(ended_at=None)


class Invitation(BaseModel):
    """A one-time link with which the owner of one address joins a lab.

    Only the SHA-256 of the link's secret is stored: 256 random bits need no slow hash.
    """

    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField()
    full_name = NameField(max_length=120, blank=True)
    role = models.CharField(max_length=12, choices=Role.choices, default=Role.VIEWER)
    invited_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    sha256 = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    delivery = models.CharField(max_length=4, choices=Delivery.choices, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ending = models.CharField(max_length=8, choices=Ending.choices, blank=True)
    objects = InvitationQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["lab", "email"],
                condition=models.Q(ended_at=None),
                name="invitation_open_unique",
            ),
        )

    def __str__(self) -> str:
        return f"{self.email} to {self.lab}"

    @property
    def has_expired(self) -> bool:
        """Return whether the invitation was not used in time."""
        return self.expires_at <= timezone.now()

    @property
    def is_live(self) -> bool:
        """Return whether the link still works."""
        return self.ended_at is None and not self.has_expired

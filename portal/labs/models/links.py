"""One-time links for a user, or for the first account of the installation."""

from __future__ import annotations

from django.db import models

from portal.core.models import BaseModel
from portal.labs.models.people import User


class Purpose(models.TextChoices):
    FIRST_RUN = "first-run", "Set up the installation"
    SIGN_IN = "sign-in", "Sign in"
    PASSWORD = "password", "Choose a new password"


class OneTimeLink(BaseModel):
    """A link that works once. Only the SHA-256 of its secret is stored."""

    purpose = models.CharField(max_length=10, choices=Purpose.choices)
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="+")
    sha256 = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    is_mailed = models.BooleanField(default=False)
    """True if the link was only sent by mail; using it then proves the address."""

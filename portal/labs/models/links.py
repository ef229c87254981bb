"""One-time links that stand for a person, or for the first of them."""

from __future__ import annotations

from django.db import models

from portal.core.models import BaseModel
from portal.labs.models.people import User


class Purpose(models.TextChoices):
    """What a link opens."""

    FIRST_RUN = "first-run", "Set up the installation"
    SIGN_IN = "sign-in", "Sign in"
    PASSWORD = "password", "Choose a new password"


class OneTimeLink(BaseModel):
    """A link that works once. Only the SHA-256 of its secret is kept."""

    purpose = models.CharField(max_length=10, choices=Purpose.choices)
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="+")
    sha256 = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    is_mailed = models.BooleanField(default=False)
    """Only the mailbox has seen it: it proves the address."""

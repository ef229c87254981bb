"""Attempts to sign in, and known browsers."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from portal.core.models import BaseModel
from portal.labs.models.people import User


class Attempt(models.Model):
    """A failed or pending attempt, under one of the counted keys."""

    key = models.CharField(max_length=64)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = (models.Index(fields=["key", "at"], name="attempt_key_at"),)


class KnownDevice(BaseModel):
    """A browser in which a user has signed in: attempts from elsewhere do not slow it.

    The browser stores a random cookie; this row stores its SHA-256.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    sha256 = models.CharField(max_length=64)
    last_used_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["user", "sha256"], name="known_device_unique"),
        )

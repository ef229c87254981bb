"""Attempts to sign in, and the browsers that people have signed in with before."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from portal.core.models import BaseModel
from portal.labs.models.people import User


class Attempt(models.Model):
    """One failed (or still undecided) attempt, under one of the keys that are counted."""

    key = models.CharField(max_length=64)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = (models.Index(fields=["key", "at"], name="attempt_key_at"),)


class KnownDevice(BaseModel):
    """A browser in which this person has signed in: guessing elsewhere does not slow it.

    The browser keeps a random cookie; here is its SHA-256.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    sha256 = models.CharField(max_length=64)
    last_used_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["user", "sha256"], name="known_device_unique"),
        )

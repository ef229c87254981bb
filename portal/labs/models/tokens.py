"""API tokens."""

from __future__ import annotations

from typing import Self

from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.utils import timezone

from portal.core.models import BaseModel
from portal.labs.models.people import Lab, User


class TokenScope(models.TextChoices):
    """Access mode of a token; ``write`` includes ``read``."""

    READ = "read", "Read"
    WRITE = "write", "Read and write"


class TokenArea(models.TextChoices):
    """Areas that limit a token; each view of the API names its area."""

    CASES = "cases", "Cases and files"
    ROIS = "rois", "Regions and labels"
    SEARCH = "search", "Search"
    MOSAICS = "mosaics", "Mosaics and follow-ups"
    LAB = "lab", "Members, sharing, erasure and audit log"


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    """Tokens; begin every query with ``visible_to``."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """The user's own tokens; not even a lab manager sees another user's tokens."""
        return self.filter(user=user) if user.is_authenticated else self.none()


class ApiToken(BaseModel):
    """An API token with its owner's access, or part of it.

    The first characters are stored to recognise it, and a SHA-256 of the secret: 256 random bits
    need no slow hash.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, null=True, related_name="+")
    """The only lab that the token reaches; None: all labs of its owner."""
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=16)
    sha256 = models.CharField(max_length=64, unique=True)
    scope = models.CharField(max_length=8, choices=TokenScope.choices, default=TokenScope.READ)
    areas = models.JSONField(default=dict, blank=True)
    """The scope in each area; empty: ``scope`` in all areas."""
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    objects = ApiTokenQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def is_live(self) -> bool:
        """Return whether the token is neither expired nor revoked."""
        return self.revoked_at is None and self.expires_at > timezone.now()

    def allows(self, area: str | None, *, writes: bool) -> bool:
        """Return whether the token allows the access.

        ``area`` None: only tokens without areas do.
        """
        if not self.areas:
            return self.scope == TokenScope.WRITE or not writes
        return self.areas.get(area) in ([TokenScope.WRITE] if writes else TokenScope.values)

    @property
    def rights_text(self) -> str:
        """Rights as text: ``Read and write``, or ``rois:write search:read``."""
        limited = " ".join(f"{area}:{scope}" for area, scope in sorted(self.areas.items()))
        return limited or TokenScope(self.scope).label

"""API tokens."""

from __future__ import annotations

from typing import Self

from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.utils import timezone

from portal.core.models import BaseModel
from portal.labs.models.people import Lab, User


class TokenScope(models.TextChoices):
    """What a token may be used for; ``write`` includes ``read``."""

    READ = "read", "Read"
    WRITE = "write", "Read and write"


class TokenArea(models.TextChoices):
    """What a token can be limited to; each view of the API names its area."""

    CASES = "cases", "Cases and files"
    ROIS = "rois", "ROIs and labels"
    SEARCH = "search", "Search"
    MOSAICS = "mosaics", "Mosaics and follow-ups"
    LAB = "lab", "Members, sharing, erasure and audit log"


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    """Tokens; begin every query with ``visible_to``."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """One's own; not even a lab manager sees another person's tokens."""
        return self.filter(user=user) if user.is_authenticated else self.none()


class ApiToken(BaseModel):
    """A program's key to its owner's view of the labs.

    Only the first characters (to recognise it) and a SHA-256 of the whole are kept. 256 random
    bits need no slow hash.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, null=True, related_name="+")
    """The only lab it reaches; None: all of its owner's."""
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
        """Neither expired nor revoked."""
        return self.revoked_at is None and self.expires_at > timezone.now()

    def allows(self, area: str | None, *, writes: bool) -> bool:
        """Whether it may be used there. Where a view names no area, only unlimited tokens may."""
        if not self.areas:
            return self.scope == TokenScope.WRITE or not writes
        return self.areas.get(area) in ([TokenScope.WRITE] if writes else TokenScope.values)

    @property
    def words(self) -> str:
        """What it may do, for people: ``Read and write``, or ``rois:write search:read``."""
        limited = " ".join(f"{area}:{scope}" for area, scope in sorted(self.areas.items()))
        return limited or TokenScope(self.scope).label

"""Writes: one-time links."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from portal.labs.hashing import secret_make, sha256_of
from portal.labs.models import OneTimeLink, Purpose, User

LIFETIME = {
    Purpose.FIRST_RUN: timedelta(days=1),
    Purpose.SIGN_IN: timedelta(minutes=15),
    Purpose.PASSWORD: timedelta(days=1),
}


def link_make(purpose: Purpose, *, user: User | None = None, is_mailed: bool = False) -> str:
    """Create a link; earlier ones of the same purpose and user stop working.

    Returns:
        The secret, which is not stored.
    """
    now = timezone.now()
    OneTimeLink.objects.filter(Q(purpose=purpose, user=user) | Q(expires_at__lte=now)).delete()
    secret, sha256 = secret_make()
    OneTimeLink.objects.create(
        purpose=purpose,
        user=user,
        sha256=sha256,
        expires_at=now + LIFETIME[purpose],
        is_mailed=is_mailed,
    )
    return secret


def link_take(secret: str, *, purpose: Purpose) -> OneTimeLink | None:
    """Use up a link; None if it was used, has expired or never existed. Only one caller gets it."""
    now = timezone.now()
    live = OneTimeLink.objects.filter(
        sha256=sha256_of(secret), purpose=purpose, used_at=None, expires_at__gt=now
    )
    if not live.update(used_at=now):
        return None
    return OneTimeLink.objects.select_related("user").get(sha256=sha256_of(secret))

"""Writes: throttling of sign-in and of guesses. Counters are in the database, so that all processes
share them without another server.

Failures are counted per account and address, per account, and per address. An attacker who guesses
passwords of an account blocks the address they guess from, for minutes; the owner can sign in from
elsewhere, from a known browser, or by a mailed link. An attempt is counted before the password is
checked, and uncounted if it was right, so concurrent attempts do not evade the limit.

Managers could guess names of other labs and addresses of accounts when they offer a case or invite
somebody; those requests are throttled here too.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from portal.core.errors import TooManyRequestsError
from portal.labs.hashing import secret_make, sha256_of
from portal.labs.models import Attempt, KnownDevice, User


@dataclass(frozen=True, slots=True)
class Limit:
    """Maximum number of failures within a time."""

    count: int
    within: timedelta


PAIR = (Limit(5, timedelta(minutes=5)),)  # an account, from one address
ACCOUNT = (Limit(50, timedelta(hours=1)),)  # an account, from everywhere: a botnet guesses slowly
ADDRESS = (Limit(50, timedelta(minutes=5)),)  # an address: a clinic behind one is many people
DEVICE = (Limit(10, timedelta(minutes=5)), Limit(50, timedelta(days=1)))  # a known browser
LAB_NAMES = (Limit(10, timedelta(hours=1)), Limit(30, timedelta(days=1)))  # unknown names, per user
LAB_NAMES_OF_LAB = (Limit(50, timedelta(days=1)),)  # the same, by all managers of a lab
INVITATIONS = (Limit(100, timedelta(hours=1)), Limit(300, timedelta(days=1)))  # sent by a lab
RETENTION = timedelta(days=1)  # the longest time of all limits
TOO_MANY_ATTEMPTS = "Too many failed attempts. Wait a few minutes, or use a link by e-mail."
DEVICE_LIFETIME = timedelta(days=180)  # without use


def attempt_begin(*, email: str, network: str, device: str = "") -> list[int]:
    """Count an attempt before it is made.

    Args:
        network: Key of a client, see ``client_network``.
        device: Cookie of the browser.
    Returns:
        Argument of ``attempt_forget`` after a successful attempt.
    Raises:
        TooManyRequestsError: the attempt was not counted, and the password must not be checked.
    """
    return _begin(_limits(email.strip().lower(), network, device), TOO_MANY_ATTEMPTS)


def lab_name_try(*, user: User, lab_id: uuid.UUID) -> list[int]:
    """Count that a member of a lab names another lab, before it is looked up.

    Returns:
        Argument of ``attempt_forget`` if the lab exists.
    Raises:
        TooManyRequestsError: too many unknown names; this one must not be looked up.
    """
    return _begin(
        {
            sha256_of(f"lab-name:person:{user.pk}"): LAB_NAMES,
            sha256_of(f"lab-name:lab:{lab_id}"): LAB_NAMES_OF_LAB,
        },
        (
            "Too many names that no lab has. Ask the other lab for its exact name, and try again "
            "later."
        ),
    )


def invitation_count(*, lab_id: uuid.UUID) -> None:
    """Count an invitation of a lab; its link tells whether the address has an account.

    Raises:
        TooManyRequestsError: the lab has sent too many.
    """
    _begin(
        {sha256_of(f"invitation:{lab_id}"): INVITATIONS},
        "Too many invitations at once. Wait an hour before you send more.",
    )


def attempt_forget(rows: Iterable[int]) -> None:
    """Uncount a successful attempt."""
    Attempt.objects.filter(pk__in=list(rows)).delete()


def attempts_sweep() -> int:
    """Delete expired attempts, and browsers unused for half a year; daily."""
    now = timezone.now()
    KnownDevice.objects.filter(last_used_at__lt=now - DEVICE_LIFETIME).delete()
    return Attempt.objects.filter(at__lt=now - RETENTION).delete()[0]


@transaction.atomic
def device_remember(user: User, *, device: str = "") -> str:
    """Record that the user has signed in with this browser; return the value of its cookie.

    Call only for an authenticated user. A browser shared by several users is known for each.
    """
    if not KnownDevice.objects.filter(sha256=sha256_of(device)).exists():
        device, _ = secret_make()  # never a value chosen by the client
    KnownDevice.objects.update_or_create(
        user=user, sha256=sha256_of(device), defaults={"last_used_at": timezone.now()}
    )
    return device


def devices_forget(user: User) -> None:
    """Forget all known browsers of the user."""
    KnownDevice.objects.filter(user=user).delete()


def _begin(limits: Mapping[str, tuple[Limit, ...]], message: str) -> list[int]:
    rows = [Attempt.objects.create(key=key).pk for key in limits]
    beyond = [
        (key, limit)
        for key, several in limits.items()
        for limit in several
        if _is_beyond(key, limit)
    ]
    if beyond:
        attempt_forget(rows)
        raise TooManyRequestsError(
            message,
            code="too-many-attempts",
            details={"retry_after_s": max(_free_in_s(key, limit) for key, limit in beyond)}
            | {"limit": beyond[-1][1].count, "window_s": int(beyond[-1][1].within.total_seconds())},
        )
    return rows


def _limits(email: str, network: str, device: str) -> dict[str, tuple[Limit, ...]]:
    if device and _is_known(email, device):
        return {sha256_of(f"device:{email}:{device}"): DEVICE}
    return {
        sha256_of(f"pair:{email}:{network}"): PAIR,
        sha256_of(f"account:{email}"): ACCOUNT,
        sha256_of(f"address:{network}"): ADDRESS,
    }


def _is_known(email: str, device: str) -> bool:
    since = timezone.now() - DEVICE_LIFETIME
    devices = KnownDevice.objects.filter(sha256=sha256_of(device), last_used_at__gt=since)
    return devices.filter(user__email=email).exists()


def _free_in_s(key: str, limit: Limit) -> int:
    """Seconds until one of the counted attempts no longer counts."""
    now = timezone.now()
    counted = Attempt.objects.filter(key=key, at__gt=now - limit.within).order_by("-at")
    last = max(limit.count - 1, 0)  # a limit of 0 looks at the newest, as 1 does
    oldest = counted.values_list("at", flat=True)[last : last + 1].first()
    wait = limit.within if oldest is None else oldest + limit.within - now
    return max(1, math.ceil(wait.total_seconds()))


def _is_beyond(key: str, limit: Limit) -> bool:
    counted = Attempt.objects.filter(key=key, at__gt=timezone.now() - limit.within)
    return counted.count() > limit.count

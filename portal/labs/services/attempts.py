"""Writes: throttling of sign-in and of guesses, counted in the database: all processes share one
count, and it needs no other server.

Failures are counted for an account from one address, for an account from everywhere and for an
address. Somebody who guesses at an account shuts out, for minutes, the address they guess from; the
owner signs in from elsewhere, from a browser that was used before, or by a link from the mailbox.
An attempt is counted before the password is looked at, and taken back when it was right: many
at once do not get around the limit.

Names of other labs and addresses of accounts can be guessed by managers alone, where they offer a
case or invite somebody; they are slowed here too.
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
    """This many failures within this time."""

    count: int
    within: timedelta


PAIR = (Limit(5, timedelta(minutes=5)),)  # an account, from one address
ACCOUNT = (Limit(50, timedelta(hours=1)),)  # an account, from everywhere: a botnet guesses slowly
ADDRESS = (Limit(50, timedelta(minutes=5)),)  # an address: a clinic behind one is many people
DEVICE = (Limit(10, timedelta(minutes=5)), Limit(50, timedelta(days=1)))  # a known browser
LAB_NAMES = (Limit(10, timedelta(hours=1)), Limit(30, timedelta(days=1)))  # not a lab, by a person
LAB_NAMES_OF_LAB = (Limit(50, timedelta(days=1)),)  # the same, by all managers of a lab
INVITATIONS = (Limit(100, timedelta(hours=1)), Limit(300, timedelta(days=1)))  # sent by a lab
KEPT = timedelta(days=1)  # the longest of them
TOO_MANY_ATTEMPTS = "Too many failed attempts. Wait a few minutes, or use a link by e-mail."
DEVICE_LIVES = timedelta(days=180)  # without use; then the browser is as unknown as any


def attempt_begin(*, email: str, network: str, device: str = "") -> list[int]:
    """Count an attempt that is about to be made.

    Args:
        network: what counts as one client, see ``client_network``.
        device: the browser's cookie.
    Returns:
        What ``attempt_forget`` takes where the attempt was right.
    Raises:
        TooManyRequestsError: not now; it was not counted and the password must not be looked at.
    """
    return _begin(_limits(email.strip().lower(), network, device), TOO_MANY_ATTEMPTS)


def lab_name_try(*, user: User, lab_id: uuid.UUID) -> list[int]:
    """Count that somebody of a lab is about to name another lab, before it is looked up.

    Returns:
        What ``attempt_forget`` takes where there is such a lab.
    Raises:
        TooManyRequestsError: too many names that no lab has; this one must not be looked up.
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
    """The attempt was right: it does not count."""
    Attempt.objects.filter(pk__in=list(rows)).delete()


def attempts_sweep() -> int:
    """Delete what no longer counts, and browsers not used for half a year; daily."""
    now = timezone.now()
    KnownDevice.objects.filter(last_used_at__lt=now - DEVICE_LIVES).delete()
    return Attempt.objects.filter(at__lt=now - KEPT).delete()[0]


@transaction.atomic
def device_remember(user: User, *, device: str = "") -> str:
    """Note that the person has signed in with this browser; returns its cookie's value.

    Call it only for somebody who is signed in. A browser that several people use is known for each.
    """
    if not KnownDevice.objects.filter(sha256=sha256_of(device)).exists():
        device, _ = secret_make()  # never one that a stranger has chosen
    KnownDevice.objects.update_or_create(
        user=user, sha256=sha256_of(device), defaults={"last_used_at": timezone.now()}
    )
    return device


def devices_forget(user: User) -> None:
    """No browser of the person is known any more."""
    KnownDevice.objects.filter(user=user).delete()


def _begin(limits: Mapping[str, tuple[Limit, ...]], said: str) -> list[int]:
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
            said,
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
    since = timezone.now() - DEVICE_LIVES
    known = KnownDevice.objects.filter(sha256=sha256_of(device), last_used_at__gt=since)
    return known.filter(user__email=email).exists()


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

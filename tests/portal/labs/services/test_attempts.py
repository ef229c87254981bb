from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from portal.core.errors import TooManyRequestsError
from portal.labs.models import Attempt, KnownDevice, User
from portal.labs.services.accounts import password_set
from portal.labs.services.attempts import (
    ACCOUNT,
    ADDRESS,
    DEVICE,
    PAIR,
    attempt_begin,
    attempt_forget,
    attempts_sweep,
    device_remember,
)

pytestmark = pytest.mark.django_db
OWNER, HOME, OTHER_ADDRESS = "owner@lab.example", "192.0.2.1", "203.0.113.9"


def fail(times: int, *, email: str = OWNER, network: str = OTHER_ADDRESS, device: str = "") -> None:
    for _ in range(times):
        attempt_begin(email=email, network=network, device=device)


def is_open(*, email: str = OWNER, network: str = OTHER_ADDRESS, device: str = "") -> bool:
    try:
        rows = attempt_begin(email=email, network=network, device=device)
    except TooManyRequestsError:
        return False
    attempt_forget(rows)
    return True


def test_guessing_shuts_out_only_the_address_of_the_guesses() -> None:
    fail(PAIR[0].count)
    assert not is_open()
    assert is_open(network=HOME)
    assert is_open(email="another@lab.example")


def test_refused_attempts_do_not_make_it_longer() -> None:
    fail(PAIR[0].count)
    counted = Attempt.objects.count()
    assert not is_open() and not is_open()
    assert Attempt.objects.count() == counted
    Attempt.objects.update(at=timezone.now() - PAIR[0].within)
    assert is_open()


def test_guessing_from_many_addresses_is_slowed_too() -> None:
    for number in range(ACCOUNT[0].count):
        fail(1, network=f"198.51.100.{number}")
    assert not is_open(network=HOME)
    assert is_open(network=HOME, email="another@lab.example")


def test_one_address_does_not_try_many_accounts() -> None:
    for number in range(ADDRESS[0].count):
        fail(1, email=f"person{number}@lab.example")
    assert not is_open(email="another@lab.example")


def test_a_known_browser_is_throttled_only_by_its_own_failures(viewer: User) -> None:
    device = device_remember(viewer)
    for number in range(ACCOUNT[0].count):
        fail(1, email=viewer.email, network=f"198.51.100.{number}")
    assert is_open(email=viewer.email, device=device)
    fail(DEVICE[0].count, email=viewer.email, device=device)
    assert not is_open(email=viewer.email, device=device)


def test_a_browser_is_trusted_only_for_its_accounts(viewer: User, reviewer: User) -> None:
    device = device_remember(viewer)
    assert device_remember(reviewer, device=device) == device  # one at a shared desk
    fail(PAIR[0].count, email="victim@lab.example", device=device)
    assert not is_open(email="victim@lab.example", device=device)
    assert is_open(email=reviewer.email, device=device)


def test_a_cookie_that_somebody_made_up_is_not_taken_over(viewer: User) -> None:
    assert device_remember(viewer, device="mine") != "mine"


def test_a_new_password_forgets_the_browsers(viewer: User) -> None:
    device_remember(viewer)
    password_set(viewer, "another long one")
    assert not KnownDevice.objects.exists()


def test_expired_attempts_are_swept() -> None:
    fail(2)
    Attempt.objects.update(at=timezone.now() - timedelta(days=2))
    assert attempts_sweep() == 6
    assert not Attempt.objects.exists()

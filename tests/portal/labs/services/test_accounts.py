"""Accounts of people."""

from __future__ import annotations

import pytest

from portal.core.errors import ConflictError, InvalidInputError
from portal.labs.models import User
from portal.labs.services import accounts as services

pytestmark = pytest.mark.django_db


def test_a_user_is_stored_with_a_lower_case_address() -> None:
    user = services.user_create(" Ada@Lab.Example ", password="a long enough one")
    assert user.email == "ada@lab.example"
    assert user.check_password("a long enough one")


def test_a_user_without_password_has_no_usable_one() -> None:
    assert not services.user_create("ada@lab.example").has_usable_password()


@pytest.mark.parametrize(
    ("email", "password", "complaint"),
    [
        ("no address", None, "valid email"),
        ("ada@lab.example", "short", "too short"),
        ("ada@lab.example", "password123", "too common"),
    ],
)
def test_a_bad_address_or_password_is_refused_with_the_reason(
    email: str, password: str | None, complaint: str
) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        services.user_create(email, password=password)
    assert not User.objects.exists()


def test_an_address_that_has_an_account_is_refused_in_any_case_of_letters(viewer: User) -> None:
    with pytest.raises(ConflictError) as caught:
        services.user_create(viewer.email.upper())
    assert caught.value.code == "email-taken"

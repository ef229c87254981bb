"""API tokens."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest
from django.utils import timezone

from portal.core.errors import InvalidInputError
from portal.core.models import Event
from portal.labs.models import ApiToken, TokenScope, User
from portal.labs.services import tokens as services

pytestmark = pytest.mark.django_db


def make_token(user: User, **changes: object) -> tuple[ApiToken, str]:
    wanted = {"name": "LIS", "scope": TokenScope.READ, "expires_in": timedelta(days=1)}
    return services.token_create(user, **(wanted | changes))  # type: ignore[arg-type]


def test_the_secret_of_a_token_is_nowhere_in_the_database(viewer: User) -> None:
    token, secret = make_token(viewer)
    row = " ".join(str(value) for value in ApiToken.objects.values_list().get(pk=token.pk))
    events = " ".join(str(payload) for payload in Event.objects.values_list("payload", flat=True))
    assert secret not in row
    assert secret not in events
    assert secret.startswith(token.prefix)
    assert token.sha256 == hashlib.sha256(secret.encode()).hexdigest()


def test_a_secret_is_long_and_never_the_same(viewer: User) -> None:
    secrets = {make_token(viewer)[1] for _ in range(20)}
    assert len(secrets) == 20
    assert {len(secret) for secret in secrets} == {len("tess_") + 43}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"name": "  "}, "name"),
        ({"name": "x" * 81}, "80"),
        ({"scope": "admin"}, "scope must be one of"),
        ({"areas": {"everything": "read"}}, "areas: expected"),
        ({"areas": {"rois": "delete"}}, "areas: expected"),
        ({"expires_in": timedelta(0)}, "366 days"),
        ({"expires_in": timedelta(days=367)}, "366 days"),
    ],
)
def test_a_token_that_is_not_acceptable_is_refused(
    viewer: User, changes: dict[str, object], complaint: str
) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        make_token(viewer, **changes)
    assert not ApiToken.objects.exists()


def test_revoking_twice_preserves_the_first_time(viewer: User) -> None:
    token, _ = make_token(viewer)
    first = services.token_revoke(token).revoked_at
    assert first is not None
    assert services.token_revoke(token).revoked_at == first
    assert Event.objects.filter(name="token.revoked").count() == 1


def test_a_token_is_live_until_it_expires_or_is_revoked(viewer: User) -> None:
    token, _ = make_token(viewer)
    assert token.is_live
    token.expires_at = timezone.now()
    assert not token.is_live
    token, _ = make_token(viewer)
    assert not services.token_revoke(token).is_live

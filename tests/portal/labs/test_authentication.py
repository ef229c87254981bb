from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from portal.labs.models import ApiToken, Membership, TokenScope, User
from portal.labs.services import tokens as services

pytestmark = pytest.mark.django_db
ME = "/api/v1/me/"


@pytest.fixture
def token_and_secret(annotator: User) -> tuple[ApiToken, str]:
    return services.token_create(
        annotator, name="LIS", scope=TokenScope.READ, expires_in=timedelta(days=1)
    )


def request(secret: str, method: str = "get", url: str = ME, scheme: str = "Bearer") -> Any:
    return getattr(APIClient(), method)(url, HTTP_AUTHORIZATION=f"{scheme} {secret}")


def assert_problem(response: Any, status: int, code: str) -> None:
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    body = response.json()
    assert (body["status"], body["code"]) == (status, code)
    assert body["type"] == f"urn:tessera:problem:{code}"
    assert body["title"] and body["detail"]
    assert "Traceback" not in response.content.decode()


def test_a_token_signs_its_owner_in(
    annotator: User, token_and_secret: tuple[ApiToken, str]
) -> None:
    token, secret = token_and_secret
    body = request(secret).json()
    assert body["user"]["email"] == annotator.email
    assert body["token"]["prefix"] == token.prefix
    assert body["token"]["scope"] == "read"
    assert "secret" not in body["token"]


def test_the_scheme_is_read_in_any_case_of_letters(token_and_secret: tuple[ApiToken, str]) -> None:
    assert request(token_and_secret[1], scheme="bearer").status_code == 200


@pytest.mark.parametrize("secret", ["tess_nothing", "", "two words", "\u00fcml\u00e4ut"])
def test_an_unknown_token_is_refused(secret: str, db: None) -> None:
    response = request(secret)
    assert_problem(response, 401, "token-unknown")
    assert response["WWW-Authenticate"].startswith("Bearer")


def test_an_expired_token_is_refused(token_and_secret: tuple[ApiToken, str]) -> None:
    token, secret = token_and_secret
    ApiToken.objects.filter(pk=token.pk).update(expires_at=timezone.now())
    assert_problem(request(secret), 401, "token-expired")


def test_a_revoked_token_is_refused(token_and_secret: tuple[ApiToken, str]) -> None:
    token, secret = token_and_secret
    services.token_revoke(token)
    assert_problem(request(secret), 401, "token-revoked")


def test_a_token_sees_nothing_after_its_owner_left_the_lab(
    annotator: User, token_and_secret: tuple[ApiToken, str]
) -> None:
    Membership.objects.filter(user=annotator).delete()
    assert request(token_and_secret[1]).json()["memberships"] == []


def test_last_use_is_written_once_a_minute(
    token_and_secret: tuple[ApiToken, str], django_assert_num_queries: Any
) -> None:
    token, secret = token_and_secret
    request(secret)
    token.refresh_from_db()
    first = token.last_used_at
    assert first is not None
    with django_assert_num_queries(2):  # the token with its owner, the memberships
        request(secret)
    token.refresh_from_db()
    assert token.last_used_at == first

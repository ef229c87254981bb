from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.labs.models import ApiToken, Lab, TokenScope, User
from portal.labs.services.labs import lab_create
from portal.labs.services.members import member_add
from portal.labs.services.tokens import token_create

pytestmark = pytest.mark.django_db
TOKENS = "/api/v1/tokens/"


def make_token(user: User, scope: TokenScope = TokenScope.WRITE) -> tuple[ApiToken, str]:
    return token_create(user, name="x", scope=scope, expires_in=timedelta(days=1))


@pytest.mark.parametrize("role", ["viewer", "annotator", "reviewer", "manager"])
def test_me_names_person_labs_and_role(
    role: str, lab: Lab, other_lab: Lab, request: pytest.FixtureRequest, api_as: Any
) -> None:
    user = request.getfixturevalue(role)
    body = api_as(user).get("/api/v1/me/").json()
    assert body["user"] == {"id": str(user.id), "email": user.email, "full_name": ""}
    assert body["memberships"] == [
        {"lab": {"id": str(lab.id), "name": lab.name, "slug": lab.slug}, "role": role}
    ]
    assert body["token"] is None


def test_me_needs_equal_queries_for_many_labs(
    annotator: User, api: APIClient, django_assert_max_num_queries: Any
) -> None:
    for number in range(5):
        lab = lab_create(f"Lab {number}")
        member_add(lab, user=annotator, role="viewer")  # type: ignore[arg-type]
    with django_assert_max_num_queries(2):
        assert len(api.get("/api/v1/me/").json()["memberships"]) == 6


def test_a_new_token_comes_with_its_secret_this_one_time(api: APIClient, annotator: User) -> None:
    wanted = {"name": "LIS", "scope": "write", "expires_in_days": 30}
    response = api.post(TOKENS, wanted)
    assert response.status_code == 201
    assert "no-store" in response["Cache-Control"]
    secret = response.json()["secret"]
    shown = api.get(f"{TOKENS}{response.json()['id']}/").json()
    assert "secret" not in shown
    assert "sha256" not in shown
    assert secret.startswith(shown["prefix"])
    answer = APIClient().get("/api/v1/me/", HTTP_AUTHORIZATION=f"Bearer {secret}")
    assert answer.json()["user"]["id"] == str(annotator.id)


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({}, "name"),
        ({"name": "x", "scope": "admin"}, "scope"),
        ({"name": "x", "expires_in_days": 0}, "expires_in_days"),
        ({"name": "x", "expires_in_days": 10_000}, "expires_in_days"),
    ],
)
def test_a_bad_token_request_names_the_field(
    api: APIClient, wanted: dict[str, object], field: str
) -> None:
    response = api.post(TOKENS, wanted)
    assert response.status_code == 400
    assert response.json()["code"] == "invalid-input"
    assert response.json()["detail"].startswith(f"{field}:")


def test_revoking_over_rest_retains_the_row(api: APIClient, annotator: User) -> None:
    token, _ = make_token(annotator)
    assert api.delete(f"{TOKENS}{token.id}/").status_code == 204
    assert api.get(f"{TOKENS}{token.id}/").json()["is_live"] is False


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_token_cannot_manage_tokens(annotator: User, method: str) -> None:
    _, secret = make_token(annotator)
    client = APIClient(HTTP_AUTHORIZATION=f"Bearer {secret}")
    response = getattr(client, method)(TOKENS, {"name": "x"} if method == "post" else None)
    assert response.status_code == 403
    assert response.json()["code"] == "session-required"
    assert ApiToken.objects.count() == 1


def test_the_list_of_tokens_costs_the_same_for_many(
    api: APIClient, annotator: User, django_assert_max_num_queries: Any
) -> None:
    for _ in range(10):
        make_token(annotator)
    with django_assert_max_num_queries(2):
        assert len(api.get(TOKENS).json()["results"]) == 10

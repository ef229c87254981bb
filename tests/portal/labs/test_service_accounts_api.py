"""Service accounts and their tokens over REST."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.labs.models import Lab, User

pytestmark = pytest.mark.django_db
SERVICE_ACCOUNTS = "/api/v1/service-accounts/"


@pytest.fixture
def managing(manager: User) -> APIClient:
    """With a session: a token makes no token."""
    client = APIClient()
    client.force_login(manager)
    return client


def test_a_service_account_is_added_gets_tokens_loses_them_and_is_removed(
    managing: APIClient, lab: Lab
) -> None:
    made = managing.post(SERVICE_ACCOUNTS, {"name": "LIS", "role": "annotator"}, format="json")
    assert made.status_code == 201
    service_account = made.json()
    assert (service_account["lab"], service_account["name"], service_account["tokens"]) == (
        str(lab.pk),
        "LIS",
        [],
    )
    at = f"{SERVICE_ACCOUNTS}{service_account['id']}/"
    wanted = {"scope": "write", "areas": {"cases": "write"}, "expires_in_days": 30}
    token = managing.post(f"{at}tokens/", wanted, format="json")
    assert token.status_code == 201 and token["Cache-Control"] == "no-store"
    bearer = {"Authorization": f"Bearer {token.json()['secret']}"}
    body = APIClient().get("/api/v1/me/", headers=bearer).json()
    assert body["token"]["areas"] == {"cases": "write"}
    assert [membership["lab"]["id"] for membership in body["memberships"]] == [str(lab.pk)]
    seen = managing.get(at).json()
    assert [item["prefix"] for item in seen["tokens"]] == [token.json()["prefix"]]
    assert "secret" not in str(seen)
    assert managing.delete(f"{at}tokens/").status_code == 204
    refused = APIClient().get("/api/v1/me/", headers=bearer)
    assert (refused.status_code, refused.json()["code"]) == (401, "token-revoked")
    assert managing.get(at).json()["tokens"] == []
    assert managing.delete(at).status_code == 204
    assert managing.get(at).status_code == 404


def test_a_service_account_cannot_manage_and_a_token_cannot_create_tokens(
    managing: APIClient, lab: Lab
) -> None:
    refused = managing.post(SERVICE_ACCOUNTS, {"name": "LIS", "role": "manager"}, format="json")
    assert (refused.status_code, "cannot be a manager" in refused.json()["detail"]) == (400, True)
    service_account = managing.post(
        SERVICE_ACCOUNTS, {"name": "LIS", "role": "viewer"}, format="json"
    ).json()
    token = managing.post("/api/v1/tokens/", {"name": "x", "scope": "write"}, format="json").json()
    bearer = {"Authorization": f"Bearer {token['secret']}"}
    by_token = APIClient().post(
        f"{SERVICE_ACCOUNTS}{service_account['id']}/tokens/", {}, format="json", headers=bearer
    )
    assert by_token.status_code == 403
    ended = APIClient().delete(f"{SERVICE_ACCOUNTS}{service_account['id']}/tokens/", headers=bearer)
    assert ended.status_code == 204, "a system may end them"


def test_the_list_costs_as_many_queries_for_many_as_for_one(
    managing: APIClient, lab: Lab, django_assert_max_num_queries: Any
) -> None:
    for number in range(5):
        sent = {"name": f"P{number}", "role": "viewer"}
        made = managing.post(SERVICE_ACCOUNTS, sent, format="json").json()
        managing.post(f"{SERVICE_ACCOUNTS}{made['id']}/tokens/", {}, format="json")
    with django_assert_max_num_queries(8):
        rows = managing.get(SERVICE_ACCOUNTS, {"lab": str(lab.pk)}).json()["results"]
    assert [(row["name"], len(row["tokens"])) for row in rows] == [(f"P{n}", 1) for n in range(5)]

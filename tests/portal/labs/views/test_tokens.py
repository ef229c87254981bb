"""Pages: one's own API tokens."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from portal.labs.models import ApiToken, TokenScope, User
from portal.labs.services import tokens as services

pytestmark = pytest.mark.django_db

TOKENS = "/account/tokens/"


NEW_TOKEN = {"name": "LIS", "scope": "read", "days": "90"}


def secret_on(response: Any) -> str:
    match = re.search(r'id="secret">([^<]+)<', response.content.decode())
    return match.group(1) if match else ""


def test_a_new_token_is_shown_once_and_not_cached(page: Client) -> None:
    response = page.post(TOKENS, NEW_TOKEN)
    assert response.status_code == 201
    assert "no-store" in response["Cache-Control"]
    secret = secret_on(response)
    assert secret.startswith(ApiToken.objects.get().prefix)
    assert secret not in page.get(TOKENS).content.decode()


def test_a_token_without_name_is_refused_on_the_page(page: Client) -> None:
    response = page.post(TOKENS, NEW_TOKEN | {"name": ""})
    assert response.status_code == 400
    assert "This field is required" in response.content.decode()
    assert not ApiToken.objects.exists()


def test_a_token_is_revoked_on_the_page(page: Client, annotator: User) -> None:
    token, _ = services.token_create(
        annotator, name="LIS", scope=TokenScope.READ, expires_in=timedelta(days=1)
    )
    response = page.post(f"{TOKENS}{token.id}/revoke/", follow=True)
    assert "no longer works" in response.content.decode()
    token.refresh_from_db()
    assert not token.is_live


def test_ticks_limit_a_token_to_areas(client: Client, viewer: User) -> None:
    client.force_login(viewer)
    sent = {"name": "Robot", "days": 30, "scope": "chosen"}
    ticks = ["rois:read", "rois:write", "search:read"]
    answer = client.post(TOKENS, sent | {"areas": ticks})
    assert answer.status_code == 201
    assert ApiToken.objects.get().areas == {"rois": "write", "search": "read"}
    assert "rois:write" in answer.content.decode()


@pytest.mark.parametrize(
    ("scope", "areas"),
    [("chosen", []), ("write", ["rois:read"]), ("chosen", ["search:write"]), ("chosen", ["x:y"])],
)
def test_ticks_and_choice_have_to_agree(
    client: Client, viewer: User, scope: str, areas: list[str]
) -> None:
    client.force_login(viewer)
    sent = {"name": "Robot", "days": 30, "scope": scope, "areas": areas}
    assert client.post(TOKENS, sent).status_code == 400
    assert not ApiToken.objects.exists()

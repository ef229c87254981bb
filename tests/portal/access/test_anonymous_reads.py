"""Whoever is not signed in writes nothing by looking: no session, no row."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.portal.access.conftest import Scene
from tests.portal.access.endpoints import endpoints, filled

ENDPOINTS = dict(endpoints())
LOOKS: tuple[dict[str, str], ...] = (
    {},
    {"X-Requested-With": "XMLHttpRequest", "Accept": "application/json"},
    {"HX-Request": "true"},
)
WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")
LONG = [f"/{name}/{'x' * 1500}/" for name in ("link", "invitation")]


def writes_of(path: str) -> list[str]:
    """The statements by which any look of an anonymous browser at a path changed a row."""
    found: list[str] = []
    for headers in LOOKS:
        for method in ("get", "head", "options"):
            cache.clear()
            with CaptureQueriesContext(
                connection,
            ) as queries:
                getattr(Client(), method)(path, headers=headers)
            found += [
                query["sql"]
                for query in queries.captured_queries
                if query["sql"].lstrip().upper().startswith(WRITES)
            ]
    return found


@pytest.mark.parametrize("name", sorted(ENDPOINTS))
def test_looking_at_an_address_writes_nothing(scene: Scene, name: str) -> None:
    before = Session.objects.count()
    assert writes_of(filled(name, ENDPOINTS[name], scene.ids)) == []
    assert Session.objects.count() == before


@pytest.mark.parametrize("path", LONG)
def test_a_long_secret_writes_nothing(scene: Scene, path: str) -> None:
    assert writes_of(path) == []


def test_what_writes_is_noticed(scene: Scene, settings: Any) -> None:
    settings.SESSION_SAVE_EVERY_REQUEST = True
    with CaptureQueriesContext(connection) as queries:
        client = scene.cast.client("manager")
        client.get("/cases/")
    assert any(query["sql"].startswith(WRITES) for query in queries.captured_queries)

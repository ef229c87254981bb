"""Whoever is not signed in writes nothing by looking: no session, no row."""

from __future__ import annotations

from collections.abc import Sequence
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
METHODS = ("get", "head", "options")
WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")
LONG = [f"/{name}/{'x' * 1500}/" for name in ("link", "invitation")]


def writes_of(
    path: str, *, looks: Sequence[dict[str, str]] = LOOKS, methods: Sequence[str] = METHODS
) -> list[str]:
    """The statements by which a look of an anonymous browser at a path changed a row."""
    writes: list[str] = []
    for headers in looks:
        for method in methods:
            cache.clear()
            with CaptureQueriesContext(connection) as queries:
                getattr(Client(), method)(path, headers=headers)
            writes += [
                query["sql"]
                for query in queries.captured_queries
                if query["sql"].lstrip().upper().startswith(WRITES)
            ]
    return writes


@pytest.mark.slow
def test_getting_an_address_writes_nothing(scene: Scene) -> None:
    _check_writes_nothing(scene, looks=LOOKS[:1], methods=METHODS[:1])


@pytest.mark.endurance
def test_safe_methods_write_nothing(scene: Scene) -> None:
    _check_writes_nothing(scene, looks=LOOKS, methods=METHODS)


def _check_writes_nothing(
    scene: Scene, *, looks: Sequence[dict[str, str]], methods: Sequence[str]
) -> None:
    before = Session.objects.count()
    result = {
        name: writes_of(filled(name, ENDPOINTS[name], scene.ids), looks=looks, methods=methods)
        for name in ENDPOINTS
    }
    assert {name: writes for name, writes in result.items() if writes} == {}
    assert Session.objects.count() == before


@pytest.mark.parametrize("path", LONG)
def test_a_long_secret_writes_nothing(scene: Scene, path: str) -> None:
    assert writes_of(path) == []


def test_a_write_is_detected(scene: Scene, settings: Any) -> None:
    settings.SESSION_SAVE_EVERY_REQUEST = True
    with CaptureQueriesContext(connection) as queries:
        client = scene.cast.client("manager")
        client.get("/cases/")
    assert any(query["sql"].startswith(WRITES) for query in queries.captured_queries)

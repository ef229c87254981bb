"""Checks of every page that a manager may open."""

from __future__ import annotations

import re

import pytest
from django.core.cache import cache
from django.db import transaction

from tests.portal.access.actors import send
from tests.portal.access.conftest import Scene
from tests.portal.access.endpoints import endpoints, filled
from tests.portal.access.rules import RULES

pytestmark = pytest.mark.slow

ENDPOINTS = dict(endpoints())
CONFIRMATION = re.compile(r"<[^>]*\bdata-confirm=[^>]*>|<[^>]*\bhx-confirm=[^>]*>", re.DOTALL)


def test_links_resolve_and_confirmations_name_the_action(scene: Scene) -> None:
    wrong = {}
    for name, rules in RULES.items():
        if "GET" in rules and not name.startswith("api:"):
            page = _page(scene, name)
            links = re.findall(r'<a[^>]*href=""[^>]*>', page)
            nameless = [
                tag for tag in CONFIRMATION.findall(page) if "data-confirm-action=" not in tag
            ]
            wrong |= {name: links + nameless} if links or nameless else {}
    assert wrong == {}


def _page(scene: Scene, name: str) -> str:
    """HTML of a page for the manager, "" if the response is not HTML."""
    rule = RULES[name]["GET"]
    path = rule.path(scene, "manager") if rule.path else filled(name, ENDPOINTS[name], scene.ids)
    cache.clear()
    with transaction.atomic():
        answer = send(scene.cast.client("manager"), "GET", path, headers=rule.headers)
        transaction.set_rollback(True)
    if answer.streaming or not answer.get("Content-Type", "").startswith("text/html"):
        return ""
    return answer.content.decode()

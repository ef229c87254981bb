"""What every page of the portal owes, read off each page that a manager may open."""

from __future__ import annotations

import re

import pytest
from django.core.cache import cache

from tests.portal.access.actors import send
from tests.portal.access.conftest import Scene
from tests.portal.access.endpoints import endpoints, filled
from tests.portal.access.rules import RULES

ENDPOINTS = dict(endpoints())
ASKING = re.compile(r"<[^>]*\bdata-confirm=[^>]*>|<[^>]*\bhx-confirm=[^>]*>", re.DOTALL)


@pytest.mark.parametrize("name", sorted(name for name, rules in RULES.items() if "GET" in rules))
def test_links_lead_somewhere_and_questions_name_what_is_done(scene: Scene, name: str) -> None:
    rule = RULES[name]["GET"]
    path = rule.path(scene, "manager") if rule.path else filled(name, ENDPOINTS[name], scene.ids)
    cache.clear()
    answer = send(scene.cast.client("manager"), "GET", path, headers=rule.headers)
    if answer.streaming or not answer.get("Content-Type", "").startswith("text/html"):
        return
    page = answer.content.decode()
    assert re.findall(r'<a[^>]*href=""[^>]*>', page) == []
    nameless = [tag for tag in ASKING.findall(page) if "data-confirm-action=" not in tag]
    assert nameless == []

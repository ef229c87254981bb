"""axe-core on each address that answers with a page, read from the access rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache

from tests import world
from tests.browser.test_accessibility import Seen
from tests.live_servers import DATABASE
from tests.portal.access.actors import send
from tests.portal.access.conftest import Scene, scene_build
from tests.portal.access.endpoints import endpoints, filled
from tests.portal.access.furnished import furnish
from tests.portal.access.rules import RULES

pytestmark = pytest.mark.browser

ACTORS = ("manager", "anonymous")


@pytest.fixture
def scene(
    storage: Path, transactional_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Scene:
    """The world of the access rules, with regions that have vectors and a built mosaic."""
    world.in_process(monkeypatch)
    with DATABASE:
        made = scene_build(tmp_path)
        made.ids.update(furnish(made))
    return made


def test_every_page_passes_the_accessibility_rules(
    open_context: Any, open_server: Any, browser: Any, scene: Scene
) -> None:
    visitors = {"manager": open_context(scene.cast.users["manager"])}
    visitors["anonymous"] = browser.new_context(viewport={"width": 1366, "height": 768})
    seen = {who: Seen(context.new_page(), open_server.url) for who, context in visitors.items()}
    pages = html_pages(scene)
    for who, path in pages.values():
        seen[who].go(path)
    visitors["anonymous"].close()
    complaints = seen["manager"].complaints + seen["anonymous"].complaints
    assert {"archive:intake", "account_login", "search:report", "archive:viewer"} <= set(pages)
    assert not complaints, "\n".join(complaints)


def html_pages(scene: Scene) -> dict[str, tuple[str, str]]:
    """Visitor and path of each endpoint that answers with a whole page, by name."""
    parameters = dict(endpoints())
    pages = {}
    for name, rules in RULES.items():
        if "GET" not in rules or name.startswith("api:"):
            continue
        rule = rules["GET"]
        for who in ACTORS:
            if rule.answers[who] != 200:
                continue
            path = rule.path(scene, who) if rule.path else filled(name, parameters[name], scene.ids)
            cache.clear()
            with DATABASE:
                answer = send(scene.cast.client(who), "GET", path, headers=rule.headers)
            if answer.status_code == 200 and not answer.streaming and b"<html" in answer.content:
                pages[name] = (who, path)
                break
    return pages

"""Everybody asks everything: each address gives each kind of caller the answer of its rule.

Addresses and methods come from the URL table, so that a new one without a rule fails here.
"""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.db import transaction
from django.http.response import HttpResponseBase

from portal.config.examples import READS_FILE
from tests.portal.access.actors import ACTORS, answer_of, send
from tests.portal.access.conftest import Scene
from tests.portal.access.endpoints import METHODS, endpoints, filled
from tests.portal.access.rules import RULES
from tests.portal.access.rules.kinds import Rule

ENDPOINTS = dict(endpoints())
CELLS = [(name, method) for name, rules in sorted(RULES.items()) for method in rules]
OUTSIDE = tuple(
    actor for actor in ACTORS if actor.startswith(("anon", "deac", "unkn", "str", "rem"))
)


def test_every_address_has_a_rule_and_every_rule_an_address() -> None:
    assert len(ENDPOINTS) == len(list(endpoints())), "two addresses share a name"
    assert sorted(set(ENDPOINTS) - set(RULES)) == [], "add them to tests/portal/access/rules"
    assert sorted(set(RULES) - set(ENDPOINTS)) == [], "these addresses are no more"


def test_methods_without_a_rule_are_refused(scene: Scene) -> None:
    paths = {name: filled(name, ENDPOINTS[name], scene.ids) for name in RULES}
    said = {
        (name, method): answer_of(_sent(scene, "manager", method, path))
        for name, path in paths.items()
        for method in set(METHODS) - set(RULES[name])
    }
    assert {cell: answer for cell, answer in said.items() if answer != 405} == {}, "need a rule"


@pytest.mark.parametrize(("name", "method"), CELLS)
def test_everybody_gets_the_answer_of_the_rule(scene: Scene, name: str, method: str) -> None:
    rule = RULES[name][method]
    said = {}
    for actor in ACTORS:
        response = _sent(scene, actor, method, _path(scene, rule, name, actor), rule)
        said[actor] = answer_of(response)
        if actor in OUTSIDE:
            asked = response.request["PATH_INFO"] + repr(rule.body(scene))
            if name == "api-schema":  # its examples were recorded from the tests' data
                asked += READS_FILE.read_text(encoding="utf-8")
            assert _told(response, scene, asked) == [], actor
    wrong = {
        who: (said[who], rule.answers[who]) for who in ACTORS if said[who] != rule.answers[who]
    }
    assert wrong == {}, "answered, expected"


def test_no_session_writes_without_the_forms_token(scene: Scene) -> None:
    said = {}
    for name, method in CELLS:
        rule = RULES[name][method]
        if method != "GET" and not rule.is_csrf_exempt:
            path = _path(scene, rule, name, "manager")
            answer = _sent(scene, "manager", method, path, rule, enforce_csrf_checks=True)
            said[name, method] = answer_of(answer)
    assert len(said) > 100
    assert {cell: answer for cell, answer in said.items() if answer != 403} == {}


def _path(scene: Scene, rule: Rule, name: str, actor: str) -> str:
    return rule.path(scene, actor) if rule.path else filled(name, ENDPOINTS[name], scene.ids)


def _sent(
    scene: Scene, actor: str, method: str, path: str, rule: Rule | None = None, **options: bool
) -> HttpResponseBase:
    """The answer; whatever the request wrote is rolled back."""
    cache.clear()
    body = rule.body(scene) if rule else {}
    headers = rule.headers if rule else {}
    with transaction.atomic():
        answer = send(scene.cast.client(actor, **options), method, path, body=body, headers=headers)
        transaction.set_rollback(True)
    return answer


def _told(answer: HttpResponseBase, scene: Scene, asked: str) -> list[str]:
    """What of the lab's the answer names, beyond what the request itself named."""
    text = b"".join(answer.streaming_content) if answer.streaming else answer.content
    secret = [word for key, word in scene.ids.items() if key != "encoders"]
    secret += [scene.world.case.accession, scene.world.slide.name, scene.world.label.name]
    said = text.decode("utf-8", "replace")
    return [word for word in secret if word not in asked and word in said]

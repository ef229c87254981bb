"""Everybody asks everything: each address gives each kind of caller the answer of its rule.

Addresses and methods come from the URL table, so that a new one without a rule fails here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from django.core.cache import cache
from django.db import transaction
from django.http.response import HttpResponseBase

from portal.operations.examples import READS_FILE
from tests.portal.access.actors import ACTORS, answer_of, send
from tests.portal.access.conftest import Scene
from tests.portal.access.endpoints import METHODS, OBJECTS, by_area, endpoints, filled
from tests.portal.access.rules import RULES
from tests.portal.access.rules.kinds import Rule, nearest_actors

ENDPOINTS = dict(endpoints())
CELLS = [(name, method) for name, rules in sorted(RULES.items()) for method in rules]
AREAS = by_area(RULES)
IDS = {"pk", "id"}
OF_NO_LAB = {  # one's own keys, of which there is none; encoders are of the installation
    ("api:encoder-detail", "GET"),
    ("mfa_remove_webauthn", "GET"),
    ("mfa_remove_webauthn", "POST"),
}
OUTSIDE = tuple(
    actor for actor in ACTORS if actor.startswith(("anon", "deac", "unkn", "str", "rem"))
)


def test_every_address_has_a_rule_and_every_rule_an_address() -> None:
    assert len(ENDPOINTS) == len(list(endpoints())), "two addresses share a name"
    assert sorted(set(ENDPOINTS) - set(RULES)) == [], "add them to tests/portal/access/rules"
    assert sorted(set(RULES) - set(ENDPOINTS)) == [], "these addresses are no more"


def test_no_rule_gives_a_stranger_an_object_of_the_lab() -> None:
    open_to_strangers = {
        (name, method)
        for name, method in CELLS
        if isinstance(answer := RULES[name][method].answers["stranger"], int)
        and answer not in {403, 404}
        and any(word in OBJECTS or word in IDS for word in map(_word, ENDPOINTS[name]))
    }
    assert open_to_strangers == OF_NO_LAB


def test_methods_without_a_rule_are_not_offered(scene: Scene) -> None:
    """Requests the pages whose ``Allow`` exceeds their rules; ``make endurance`` requests all."""
    answered = {}
    for name, rules in RULES.items():
        answer = _sent(scene, "manager", "OPTIONS", filled(name, ENDPOINTS[name], scene.ids))
        offered = set(re.split(", *", answer.headers.get("Allow", ", ".join(METHODS))))
        if offered & set(METHODS) - set(rules):
            answered[name] = _methods_answered(scene, name)
    assert {name: methods for name, methods in answered.items() if methods} == {}, "need a rule"


@pytest.mark.endurance
def test_methods_without_a_rule_are_refused(scene: Scene) -> None:
    answered = {name: _methods_answered(scene, name) for name in RULES}
    assert {name: methods for name, methods in answered.items() if methods} == {}, "need a rule"


@pytest.mark.parametrize("area", AREAS)
def test_each_answer_of_a_rule_is_given(scene: Scene, area: str) -> None:
    wrong = {}
    for name in AREAS[area]:
        for method, rule in RULES[name].items():
            wrong |= _wrong_answers(scene, name, method, nearest_actors(rule))
    assert wrong == {}, "answered, expected, words of the lab"


@pytest.mark.endurance
@pytest.mark.parametrize("area", AREAS)
def test_every_role_gets_the_answer_of_the_rule(scene: Scene, area: str) -> None:
    wrong = {}
    for name in AREAS[area]:
        for method in RULES[name]:
            wrong |= _wrong_answers(scene, name, method, ACTORS)
    assert wrong == {}, "answered, expected, words of the lab"


def test_no_session_writes_without_the_forms_token(scene: Scene) -> None:
    data = {}
    for name, method in CELLS:
        rule = RULES[name][method]
        if method != "GET" and not rule.is_csrf_exempt:
            path = _path(scene, rule, name, "manager")
            answer = _sent(scene, "manager", method, path, rule, enforce_csrf_checks=True)
            data[name, method] = answer_of(answer)
    assert len(data) > 100
    assert {cell: answer for cell, answer in data.items() if answer != 403} == {}


def _word(parameter: str) -> str:
    return parameter.removesuffix("_id")


def _methods_answered(scene: Scene, name: str) -> set[str]:
    """Methods without a rule that are not refused."""
    path = filled(name, ENDPOINTS[name], scene.ids)
    others = set(METHODS) - set(RULES[name])
    return {other for other in others if _sent(scene, "manager", other, path).status_code != 405}


def _wrong_answers(
    scene: Scene, name: str, method: str, actors: Iterable[str]
) -> dict[tuple[str, str, str], object]:
    """Answers that are not the rule's, and those to outsiders that name something of the lab."""
    rule = RULES[name][method]
    wrong: dict[tuple[str, str, str], object] = {}
    for actor in actors:
        response = _sent(scene, actor, method, _path(scene, rule, name, actor), rule)
        answer, actual = answer_of(response), []
        if actor in OUTSIDE:
            requested = response.request["PATH_INFO"] + repr(rule.body(scene))
            if name.startswith("api-schema"):  # its examples were recorded from the tests' data
                requested += READS_FILE.read_text(encoding="utf-8")
            actual = _leaked_words(response, scene, requested)
        if actor == "stranger" and answer == 404 and name.startswith("api:"):
            actual += (
                [] if response["Content-Type"] == "application/problem+json" else ["no problem"]
            )
        if answer != rule.answers[actor] or actual:
            wrong[name, method, actor] = (answer, rule.answers[actor], actual)
    return wrong


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


def _leaked_words(answer: HttpResponseBase, scene: Scene, requested: str) -> list[str]:
    """Names and ids of the lab in a response that were not in its request."""
    text = b"".join(answer.streaming_content) if answer.streaming else answer.content
    secret = [word for key, word in scene.ids.items() if key != "encoders"]
    secret += [scene.world.case.accession, scene.world.slide.name, scene.world.label.name]
    content = text.decode("utf-8", "replace")
    return [word for word in secret if word not in requested and word in content]

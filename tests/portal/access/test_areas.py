"""A token that is limited to areas stays in them: each call, from within and from beyond."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.db import transaction
from django.http.response import HttpResponseBase
from django.test import Client

from portal.archive.tiles.server import TILES
from portal.labs.delegation import BY_A_PERSON, CARRIES
from portal.labs.models import ApiToken, TokenArea, TokenScope
from tests.portal.access.actors import send
from tests.portal.access.conftest import Scene
from tests.portal.access.endpoints import endpoints, filled
from tests.portal.access.rules import RULES

ENDPOINTS = dict(endpoints())
OF_WORD = {
    "assignment": TokenArea.ROIS,
    "audit": TokenArea.LAB,
    "bin": TokenArea.CASES,
    "canvas": TokenArea.CASES,
    "case": TokenArea.CASES,
    "encoder": TokenArea.SEARCH,
    "dicom": TokenArea.CASES,
    "erasure": TokenArea.LAB,
    "followup": TokenArea.MOSAICS,
    "invitation": TokenArea.LAB,
    "label": TokenArea.ROIS,
    "map": TokenArea.SEARCH,
    "learning": TokenArea.LAB,
    "member": TokenArea.LAB,
    "mosaic": TokenArea.MOSAICS,
    "program": TokenArea.LAB,
    "quarantine": TokenArea.CASES,
    "query": TokenArea.SEARCH,
    "report": TokenArea.SEARCH,
    "review": TokenArea.ROIS,
    "roi": TokenArea.ROIS,
    "search": TokenArea.SEARCH,
    "share": TokenArea.LAB,
    "slide": TokenArea.CASES,
    "study": TokenArea.ROIS,
    "unannotated": TokenArea.SEARCH,
    "upload": TokenArea.CASES,
    "video": TokenArea.CASES,
    "webhook": TokenArea.LAB,
}
"""The area of an address, by the first word of its name."""
EXCEPTIONS = {
    "api:canvas-annotations": TokenArea.ROIS,
    "api:canvas-live": TokenArea.ROIS,
    "api:canvas-look-through": TokenArea.SEARCH,
    "api:canvas-outline": TokenArea.ROIS,
    "api:canvas-roi-file": TokenArea.ROIS,
    "api:case-shares": TokenArea.LAB,
    "api:intake-rules": TokenArea.LAB,
    "api:review-rules": TokenArea.LAB,
    "api:roi-judgement": TokenArea.SEARCH,
    "api:roi-judgements": TokenArea.SEARCH,
    "api:roi-label-confirmation": TokenArea.SEARCH,
    "api:roi-places": TokenArea.SEARCH,
    "api:roi-similar": TokenArea.SEARCH,
    "api:roi-why": TokenArea.SEARCH,
}
OPEN = {
    "api:events",
    "api:job-cancel-many",
    "api:me",
    "api:job-list",
    "api:job-detail",
    "api:job-cancel",
    "api:job-retry",
}
CLOSED = {"api:token-list", "api:token-detail"}  # to every token
CALLS = [
    (name, method)
    for name, rules in sorted(RULES.items())
    if name.startswith("api:") and name not in OPEN | CLOSED
    for method in rules
    if (name, method) not in BY_A_PERSON
]
GRANTS_NOTHING = {
    ("api:case-shares", "GET"),
    ("api:erasure-list", "POST"),
    ("api:intake-rules", "PUT"),
    ("api:learning-list", "POST"),
    ("api:learning-promote", "POST"),
    ("api:learning-roll-back", "POST"),
    ("api:review-rules", "PUT"),
    ("api:share-end", "POST"),
    ("api:webhook-ping", "POST"),
}
"""Writes of the area ``lab`` that give nobody access and carry nothing out."""


@pytest.mark.parametrize(("name", "method"), CALLS)
def test_a_token_stays_in_its_areas(scene: Scene, name: str, method: str) -> None:
    rule = RULES[name][method]
    area = _area(name)
    reads = rule.answers["read_token"] != 403 or rule.answers["write_token"] == 403
    with transaction.atomic():
        other = {one: TokenScope.WRITE for one in TokenArea if one != area}
        refused = _asked(scene, name, method, other)
        assert (refused.status_code, "token-area" in _text(refused)) == (403, True)
        needs = CARRIES.get((name, method), {})
        if set(needs) - {area}:
            lacking = _asked(scene, name, method, {area: TokenScope.WRITE})
            assert (lacking.status_code, "token-area" in _text(lacking)) == (403, True)
        within = _asked(scene, name, method, {**needs, area: TokenScope.WRITE})
        assert within.status_code == rule.answers["write_token"]
        reading = _asked(scene, name, method, {**needs, area: TokenScope.READ})
        expected = rule.answers["write_token"] if reads else 403
        assert reading.status_code == expected
        transaction.set_rollback(True)


@pytest.mark.parametrize(("name", "method"), sorted(BY_A_PERSON))
def test_no_token_makes_accounts_roles_programs_or_tokens(
    scene: Scene, name: str, method: str
) -> None:
    for areas in ({}, dict.fromkeys(TokenArea, TokenScope.WRITE)):
        answer = _asked(scene, name, method, areas)
        assert (answer.status_code, answer.json()["code"]) == (403, "session-required")


def test_every_write_in_the_area_of_the_lab_is_judged() -> None:
    writes = {
        (name, method)
        for name, method in CALLS
        if _area(name) == TokenArea.LAB and method in {"POST", "PUT", "PATCH"}
    }
    assert sorted(writes - CARRIES.keys() - GRANTS_NOTHING) == [], "does it give access?"


@pytest.mark.parametrize("name", ["api:me", "api:job-list", "api:job-detail"])
def test_who_asks_and_the_jobs_are_open_to_every_token(scene: Scene, name: str) -> None:
    with transaction.atomic():
        assert _asked(scene, name, "GET", {TokenArea.SEARCH: TokenScope.READ}).status_code == 200
        transaction.set_rollback(True)


def test_a_token_without_the_area_of_cases_gets_no_tiles(scene: Scene) -> None:
    rule = RULES["archive:tile"]["GET"]
    assert rule.path is not None
    for area, expected in ((TokenArea.ROIS, 403), (TokenArea.CASES, 200)):
        with transaction.atomic():
            TILES.clear()
            client = _client(scene, {area: TokenScope.READ})
            assert client.get(rule.path(scene, "write_token")).status_code == expected
            transaction.set_rollback(True)
    TILES.clear()


def _area(name: str) -> TokenArea:
    word = name.removeprefix("api:").partition("-")[0]
    return EXCEPTIONS.get(name) or OF_WORD[word]


def _client(scene: Scene, areas: dict[TokenArea, TokenScope]) -> Client:
    """The manager's token that may write, limited to areas for this transaction."""
    token = ApiToken.objects.get(user=scene.cast.users["manager"], name="write_token")
    ApiToken.objects.filter(pk=token.pk).update(areas={str(a): str(s) for a, s in areas.items()})
    return scene.cast.client("write_token")


def _asked(
    scene: Scene, name: str, method: str, areas: dict[TokenArea, TokenScope]
) -> HttpResponseBase:
    rule = RULES[name][method]
    path = filled(name, ENDPOINTS[name], scene.ids)
    cache.clear()
    with transaction.atomic():
        client = _client(scene, areas)
        answer = send(client, method, path, body=rule.body(scene), headers=rule.headers)
        _text(answer)
        transaction.set_rollback(True)
    return answer


def _text(answer: HttpResponseBase) -> str:
    if answer.streaming:
        return b"".join(answer.streaming_content).decode("utf-8", "replace")
    return answer.content.decode("utf-8", "replace")

"""A token that is limited to areas stays in them: each call, from within and from beyond."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from django.test import Client

from portal.archive.tiles.server import TILES
from portal.labs.delegation import BY_A_PERSON, CARRIES
from portal.labs.models import ApiToken, TokenArea, TokenScope
from tests.portal.access.actors import send
from tests.portal.access.conftest import Scene
from tests.portal.access.endpoints import by_area, endpoints, filled
from tests.portal.access.rules import RULES

pytestmark = pytest.mark.slow

ENDPOINTS = dict(endpoints())
OF_WORD = {
    "assignment": TokenArea.ROIS,
    "audit": TokenArea.LAB,
    "trash": TokenArea.CASES,
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
    "service": TokenArea.LAB,  # service accounts
    "original": TokenArea.CASES,
    "quarantine": TokenArea.CASES,
    "query": TokenArea.SEARCH,
    "redaction": TokenArea.CASES,
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
    "vocabulary": TokenArea.CASES,
    "webhook": TokenArea.LAB,
}
"""The area of an address, by the first word of its name."""
EXCEPTIONS = {
    "api:canvas-annotations": TokenArea.ROIS,
    "api:canvas-live": TokenArea.ROIS,
    "api:canvas-look-through": TokenArea.SEARCH,
    "api:canvas-outline": TokenArea.ROIS,
    "api:canvas-roi-file": TokenArea.ROIS,
    "api:case-quantification-table": TokenArea.ROIS,
    "api:case-bulk-shares": TokenArea.LAB,
    "api:case-shares": TokenArea.LAB,
    "api:intake-rules": TokenArea.LAB,
    "api:quantification-settings": TokenArea.LAB,
    "api:review-rules": TokenArea.LAB,
    **dict.fromkeys(
        (
            "api:video-event-detail",
            "api:video-event-list",
            "api:video-event-names",
            "api:video-event-purge",
            "api:video-event-restore",
            "api:video-event-revisions",
        ),
        TokenArea.ROIS,
    ),
    "api:roi-judgement": TokenArea.SEARCH,
    "api:roi-judgements": TokenArea.SEARCH,
    "api:roi-label-confirmation": TokenArea.SEARCH,
    "api:roi-similar-regions": TokenArea.SEARCH,
    "api:roi-similar": TokenArea.SEARCH,
    "api:roi-explanation": TokenArea.SEARCH,
}
OPEN = {
    "api:events",
    "api:job-cancel-many",
    "api:me",
    "api:notification-detail",
    "api:notification-list",
    "api:notification-preferences",
    "api:notification-read",
    "api:notification-read-many",
    "api:notification-unread",
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
WORDS = by_area({name for name, _ in CALLS})
WITHOUT_GRANT = {
    ("api:case-shares", "GET"),
    ("api:erasure-list", "POST"),
    ("api:intake-rules", "PUT"),
    ("api:learning-list", "POST"),
    ("api:learning-promote", "POST"),
    ("api:learning-roll-back", "POST"),
    ("api:quantification-settings", "PUT"),
    ("api:review-rules", "PUT"),
    ("api:share-end", "POST"),
    ("api:webhook-ping", "POST"),
}
"""Writes of the area ``lab`` that give nobody access and carry nothing out."""


@pytest.mark.parametrize("word", WORDS)
def test_a_token_stays_in_its_areas(scene: Scene, word: str) -> None:
    """A read goes with the right to read, a write with that to write and not with the other."""
    wrong, reading_refused = [], set[TokenArea]()
    for name, method in (call for part in WORDS[word] for call in _calls(part)):
        area = _area(name)
        is_sampled = not _reads(name, method) and area not in reading_refused
        if is_sampled:
            reading_refused.add(area)
        wrong += _wrong_in_areas(scene, name, method, refuses_reading=is_sampled)
    assert wrong == []


@pytest.mark.endurance
@pytest.mark.parametrize("word", WORDS)
def test_read_scope_allows_no_write(scene: Scene, word: str) -> None:
    calls = [call for name in WORDS[word] for call in _calls(name)]
    wrong = []
    for name, method in calls:
        wrong += _wrong_in_areas(scene, name, method, refuses_reading=not _reads(name, method))
    assert wrong == []


def test_no_token_makes_accounts_roles_service_accounts_or_tokens(scene: Scene) -> None:
    for name, method in sorted(BY_A_PERSON):
        for areas in ({}, dict.fromkeys(TokenArea, TokenScope.WRITE)):
            answer = _request(scene, name, method, areas)
            response = (answer.status_code, answer.json()["code"])
            assert response == (403, "session-required"), (name, method, areas)


def test_every_write_in_the_area_of_the_lab_is_judged() -> None:
    writes = {
        (name, method)
        for name, method in CALLS
        if _area(name) == TokenArea.LAB and method in {"POST", "PUT", "PATCH"}
    }
    assert sorted(writes - CARRIES.keys() - WITHOUT_GRANT) == [], "does it give access?"


@pytest.mark.parametrize("name", ["api:me", "api:job-list", "api:job-detail"])
def test_own_account_and_jobs_are_open_to_every_token(scene: Scene, name: str) -> None:
    with transaction.atomic():
        assert _request(scene, name, "GET", {TokenArea.SEARCH: TokenScope.READ}).status_code == 200
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


def _calls(name: str) -> list[tuple[str, str]]:
    return [call for call in CALLS if call[0] == name]


def _reads(name: str, method: str) -> bool:
    answers = RULES[name][method].answers
    return answers["read_token"] != 403 or answers["write_token"] == 403


def _wrong_in_areas(
    scene: Scene, name: str, method: str, *, refuses_reading: bool
) -> list[tuple[str, str, str, object]]:
    """Answers to tokens for the call's area and for the others that are not those expected."""
    area, done = _area(name), RULES[name][method].answers["write_token"]
    needs = CARRIES.get((name, method), {})
    refused = {"other areas": {item: TokenScope.WRITE for item in TokenArea if item != area}}
    if set(needs) - {area}:
        refused["without what it carries"] = {area: TokenScope.WRITE}
    scope = TokenScope.READ if _reads(name, method) else TokenScope.WRITE
    wrong: list[tuple[str, str, str, object]] = []
    with transaction.atomic():
        for case, areas in refused.items():
            answer = _request(scene, name, method, areas)
            if answer.status_code != 403 or "token-area" not in _text(answer):
                wrong.append((name, method, case, answer.status_code))
        expected = [(scope, done)]
        if refuses_reading:
            expected.append((TokenScope.READ, 403))
        for granted, status in expected:
            answer = _request(scene, name, method, {**needs, area: granted})
            if answer.status_code != status:
                wrong.append((name, method, f"within, {granted}", answer.status_code))
        transaction.set_rollback(True)
    return wrong


def _area(name: str) -> TokenArea:
    word = name.removeprefix("api:").partition("-")[0]
    return EXCEPTIONS.get(name) or OF_WORD[word]


def _client(scene: Scene, areas: dict[TokenArea, TokenScope]) -> Client:
    """The manager's token that may write, limited to areas for this transaction."""
    token = ApiToken.objects.get(user=scene.cast.users["manager"], name="write_token")
    ApiToken.objects.filter(pk=token.pk).update(areas={str(a): str(s) for a, s in areas.items()})
    return scene.cast.client("write_token")


def _request(scene: Scene, name: str, method: str, areas: dict[TokenArea, TokenScope]) -> Any:
    rule = RULES[name][method]
    path = filled(name, ENDPOINTS[name], scene.ids)
    cache.clear()
    with transaction.atomic():
        client = _client(scene, areas)
        answer = send(client, method, path, body=rule.body(scene), headers=rule.headers)
        _text(answer)
        transaction.set_rollback(True)
    return answer


def _text(answer: Any) -> str:
    if answer.streaming:
        return b"".join(answer.streaming_content).decode("utf-8", "replace")
    return str(answer.content, "utf-8", "replace")

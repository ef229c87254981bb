"""What the matrix asks for stands in the audit log: once, in the right lab, with its case."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.cache import cache
from django.db import transaction

from portal.audit.actions import ACTIONS, EVENTS, NOT_NOTED
from portal.audit.models import AuditEntry, Outcome
from portal.config.auditing.middleware import NOTED
from portal.config.auditing.watched import NOTHING, WATCHED
from tests.portal.access.actors import send
from tests.portal.access.conftest import Scene
from tests.portal.access.endpoints import endpoints, filled
from tests.portal.access.rules import RULES

ROOT = Path(__file__).resolve().parents[3]
EMITS = re.compile(r"(?<!entry)(emit|_note)$")
ENDPOINTS = dict(endpoints())
WITH_A_CASE = {"canvas", "case", "followup", "item", "mosaic", "roi", "slide", "video"}
CELLS = [(name, method) for name, methods in WATCHED.items() for method in methods]


def test_every_address_is_watched_or_has_nothing_to_note() -> None:
    assert sorted(set(ENDPOINTS) - set(WATCHED) - NOTHING) == [], "see portal/config/auditing"
    assert sorted((set(WATCHED) | NOTHING) - set(ENDPOINTS)) == [], "these addresses are no more"
    assert set(WATCHED) & NOTHING == set()


def test_every_method_that_needs_a_role_is_watched() -> None:
    """Whatever a viewer may not do, or another lab may not see."""
    missing = [
        (name, method)
        for name, methods in RULES.items()
        if name not in NOTHING
        for method, rule in methods.items()
        if method not in WATCHED[name] and method != "GET" and rule.answers["viewer"] == 403
    ]
    assert missing == []


@pytest.mark.parametrize(("name", "method"), CELLS)
def test_what_is_answered_is_noted_once(scene: Scene, name: str, method: str) -> None:
    watch = WATCHED[name][method]
    status, entries = _noted(scene, "manager", name, method)
    if status == 403:  # what not even a manager may
        assert [entry.outcome for entry in entries] == [Outcome.REFUSED]
        return
    if status >= 400 or watch.only_tokens:
        assert entries == []
        return
    if watch.action.startswith("share.") and watch.is_told:  # told to both labs, in the same words
        mine, theirs = entries
        assert (mine.action, mine.details) == (theirs.action, theirs.details)
        entries = [mine]
    if watch.is_told:  # by the event; a repeated upload changes nothing
        assert {entry.action for entry in entries} <= {watch.action}
    else:
        assert [entry.action for entry in entries if entry.action == watch.action] == [watch.action]
    for entry in entries:
        assert str(entry.lab_id) == scene.ids["labs"]
        assert entry.actor_id == scene.cast.users["manager"].pk
        assert entry.outcome == Outcome.DONE
        if entry.object_id and watch.kind in WITH_A_CASE:
            assert str(entry.case_id) == scene.ids["cases"]


def test_what_a_role_is_refused_is_noted(scene: Scene) -> None:
    refused = [cell for cell in CELLS if RULES[cell[0]][cell[1]].answers["viewer"] == 403]
    found, expected = {}, {}
    for name, method in refused:
        _, entries = _noted(scene, "viewer", name, method)
        found[name, method] = [(one.action, one.outcome, str(one.lab_id)) for one in entries]
        action = WATCHED[name][method].action
        expected[name, method] = [(action, Outcome.REFUSED, scene.ids["labs"])]
    assert found == expected
    assert len(found) > 50


@pytest.mark.parametrize("actor", ["anonymous", "stranger_token"])
def test_outsiders_leave_nothing_in_the_labs_log(scene: Scene, actor: str) -> None:
    left = [
        (name, method, entry.action)
        for name, method in CELLS
        for entry in _noted(scene, actor, name, method)[1]
        if str(entry.lab_id) == scene.ids["labs"]
    ]
    assert left == []


def test_tiles_note_nothing(scene: Scene) -> None:
    rule = RULES["archive:tile"]["GET"]
    assert rule.path is not None
    with transaction.atomic():
        before = AuditEntry.objects.count()
        answer = scene.cast.client("viewer").get(rule.path(scene, "viewer"))
        assert (answer.status_code, AuditEntry.objects.count()) == (200, before)


def test_a_canvas_read_again_and_again_by_a_token_is_noted_once(scene: Scene) -> None:
    path = filled("api:canvas-tile", ENDPOINTS["api:canvas-tile"], scene.ids)
    client = scene.cast.client("read_token")
    with transaction.atomic():
        before = AuditEntry.objects.count()
        assert [client.get(path).status_code for _ in range(3)] == [200] * 3
        assert AuditEntry.objects.count() == before + 1
        entry = AuditEntry.objects.latest("id")
        assert entry.token_id is not None and entry.actor_id == scene.cast.users["manager"].pk


def test_no_text_of_a_patient_gets_into_the_log(scene: Scene) -> None:
    client = scene.cast.client("viewer")
    with transaction.atomic():
        client.get("/cases/", {"q": "W-1", "organ": "colon", "patient_key": "p1"})
        entry = AuditEntry.objects.latest("id")
    assert (
        set(entry.details) == {"q", "filters"} and entry.details["filters"] == "organ,patient_key"
    )
    assert "W-1" not in str(entry.details) and "p1" not in str(entry.details)


def test_every_event_and_action_has_its_words() -> None:
    emitted = set(_emitted())
    assert len(emitted) > 10
    assert emitted - set(EVENTS) - NOT_NOTED == set(), "say in portal/audit/actions.py"
    watched = {watch.action for methods in WATCHED.values() for watch in methods.values()}
    assert (watched | set(EVENTS)) - set(ACTIONS) == set()


def _emitted() -> Iterator[str]:
    """Names of events as they stand in the code: ``subject.what``."""
    for path in (ROOT / "portal").glob("*/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and EMITS.search(called):
                for constant in (c for one in node.args for c in ast.walk(one)):
                    value = getattr(constant, "value", None)
                    if isinstance(value, str) and "." in value.strip("."):
                        yield value


def _noted(scene: Scene, actor: str, name: str, method: str) -> tuple[int, list[AuditEntry]]:
    rule = RULES[name][method]
    path = rule.path(scene, actor) if rule.path else filled(name, ENDPOINTS[name], scene.ids)
    NOTED.clear()
    cache.clear()  # a sweep asks more often than one may: what is throttled would note nothing
    with transaction.atomic():
        newest = AuditEntry.objects.order_by("-id").values_list("id", flat=True).first() or 0
        client = scene.cast.client(actor)
        answer = send(client, method, path, body=rule.body(scene), headers=rule.headers)
        if answer.streaming:
            b"".join(answer.streaming_content)
        entries = list(AuditEntry.objects.filter(pk__gt=newest).order_by("id"))
        transaction.set_rollback(True)
    return answer.status_code, entries

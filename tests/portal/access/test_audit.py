"""Requests of the access matrix are recorded once, in the right lab, with their case."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.cache import cache
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from portal.audit.actions import ACTIONS, EVENTS, NOT_NOTED
from portal.audit.models import AuditEntry, Outcome
from portal.core.http.audit_rules import ITEM, AuditRule, audit_rules_of, audited, not_audited
from portal.operations.audit_middleware import RECENT, SUBJECTS
from tests.portal.access.actors import send
from tests.portal.access.conftest import Scene
from tests.portal.access.endpoints import (
    audit_rules,
    by_area,
    callbacks,
    endpoints,
    filled,
    module_of,
)
from tests.portal.access.rules import RULES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
EMITS = re.compile(r"(?<!entry)(emit|_note)$")
ENDPOINTS = dict(endpoints())
WITH_A_CASE = {
    "canvas",
    "case",
    "followup",
    "item",
    "mosaic",
    "roi",
    "slide",
    "video",
    "video_event",
}
AUDITED = audit_rules()
AREAS = by_area(AUDITED)
CELLS = [(name, method) for name, methods in AUDITED.items() for method in methods]


def test_every_view_declares_its_audit_rules() -> None:
    """Views of installed packages declare none: signals of sign-in are recorded instead."""
    undeclared = [
        name
        for name, view in callbacks()
        if module_of(view).startswith("portal.") and audit_rules_of(view) is None
    ]
    assert undeclared == [], "add audited or not_audited of portal/core/http/audit_rules.py"


def test_the_lab_of_each_kind_of_object_is_found() -> None:
    kinds = {rule.kind for rules in AUDITED.values() for rule in rules.values()}
    assert kinds - {"", "lab", ITEM} <= set(SUBJECTS)


def test_a_view_without_a_declaration_and_an_undeclared_action_have_no_rules() -> None:
    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse()

    @audited(list=AuditRule("case.listed"))
    class Declared(ViewSet):
        def list(self, request: Request) -> Response:
            return Response()

        def retrieve(self, request: Request, pk: str) -> Response:
            return Response()

    class Inheriting(Declared):
        pass

    assert audit_rules_of(view) is None
    assert audit_rules_of(Inheriting.as_view({"get": "list"})) is None
    assert audit_rules_of(Declared.as_view({"get": "list"})) == {"GET": AuditRule("case.listed")}
    assert audit_rules_of(Declared.as_view({"get": "retrieve"})) is None
    assert audit_rules_of(not_audited("no data of patients")(view)) == {}


def test_every_method_that_needs_a_role_is_audited() -> None:
    """Methods that are forbidden to viewers, or hidden from other labs, are audited."""
    missing = [
        (name, method)
        for name, methods in RULES.items()
        if name in AUDITED
        for method, rule in methods.items()
        if method not in AUDITED[name] and method != "GET" and rule.answers["viewer"] == 403
    ]
    assert missing == []


@pytest.mark.parametrize("area", AREAS)
def test_each_answer_is_audited_once(scene: Scene, area: str) -> None:
    wrong = {}
    for name in AREAS[area]:
        for method, audit in AUDITED[name].items():
            if problem := _wrongly_noted(scene, name, method, audit):
                wrong[name, method] = problem
    assert wrong == {}


def test_a_refusal_by_role_is_audited(scene: Scene) -> None:
    refused = [cell for cell in CELLS if RULES[cell[0]][cell[1]].answers["viewer"] == 403]
    result, expected = {}, {}
    for name, method in refused:
        _, entries = _noted(scene, "viewer", name, method)
        result[name, method] = [(row.action, row.outcome, str(row.lab_id)) for row in entries]
        action = AUDITED[name][method].action
        expected[name, method] = [(action, Outcome.REFUSED, scene.ids["labs"])]
    assert result == expected
    assert len(result) > 50


@pytest.mark.parametrize(
    "actor", [pytest.param("anonymous", marks=pytest.mark.endurance), "stranger_token"]
)
def test_outsiders_add_no_entry_to_the_labs_log(scene: Scene, actor: str) -> None:
    left = [
        (name, method, entry.action)
        for name, method in CELLS
        for entry in _noted(scene, actor, name, method)[1]
        if str(entry.lab_id) == scene.ids["labs"]
    ]
    assert left == []


def test_tiles_are_not_audited(scene: Scene) -> None:
    rule = RULES["archive:tile"]["GET"]
    assert rule.path is not None
    with transaction.atomic():
        before = AuditEntry.objects.count()
        answer = scene.cast.client("viewer").get(rule.path(scene, "viewer"))
        assert (answer.status_code, AuditEntry.objects.count()) == (200, before)


def test_repeated_reads_of_a_canvas_by_a_token_are_logged_once(scene: Scene) -> None:
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
    audited_actions = {rule.action for rules in AUDITED.values() for rule in rules.values()}
    assert (audited_actions | set(EVENTS)) - set(ACTIONS) == set()


def _emitted() -> Iterator[str]:
    """Names of events as they stand in the code: ``subject.what``."""
    for path in (ROOT / "portal").glob("*/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and EMITS.search(called):
                for constant in (c for arg in node.args for c in ast.walk(arg)):
                    value = getattr(constant, "value", None)
                    if isinstance(value, str) and "." in value.strip("."):
                        yield value


def _wrongly_noted(scene: Scene, name: str, method: str, audit: AuditRule) -> list[object]:
    """Entries of a manager's request other than those of its action; empty where all are right."""
    status, entries = _noted(scene, "manager", name, method)
    actions = [entry.action for entry in entries]
    if status == 403:  # what not even a manager may
        outcomes = [entry.outcome for entry in entries]
        return [] if outcomes == [Outcome.REFUSED] else [status, outcomes]
    if status >= 400 or audit.only_tokens:
        return [status, actions] if entries else []
    if audit.action.startswith("share.") and audit.only_rejections:  # both labs
        if len({(entry.action, repr(entry.details)) for entry in entries}) != 1 or actions[2:]:
            return [status, [(entry.action, entry.details) for entry in entries]]
        entries, actions = entries[:1], actions[:1]
    noted = actions.count(audit.action)
    # Only the content of an event is recorded; a repeated upload changes nothing.
    if noted != len(actions) if audit.only_rejections else noted != 1:
        return [status, actions]
    manager = scene.cast.users["manager"].pk
    return [
        (entry.action, entry.lab_id, entry.actor_id, entry.outcome, entry.case_id)
        for entry in entries
        if (str(entry.lab_id), entry.actor_id) != (scene.ids["labs"], manager)
        or entry.outcome != Outcome.DONE
        or (
            (entry.object_id and audit.kind in WITH_A_CASE)
            and str(entry.case_id) != scene.ids["cases"]
        )
    ]


def _noted(scene: Scene, actor: str, name: str, method: str) -> tuple[int, list[AuditEntry]]:
    rule = RULES[name][method]
    path = rule.path(scene, actor) if rule.path else filled(name, ENDPOINTS[name], scene.ids)
    RECENT.clear()
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

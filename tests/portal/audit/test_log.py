"""Access to the audit log by page, export and REST; entries of signing in and out."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest
from django.db import DatabaseError
from django.test import Client

from portal.audit import services
from portal.audit.actions import ACTIONS
from portal.audit.models import INSTALLATION, AuditEntry
from portal.audit.selectors import chain_break
from portal.audit.services import entries_seal, entry_note, keyed_hash
from portal.core.events import event_emit
from portal.labs.models import Lab, Role, TokenScope, User
from portal.labs.services.members import member_set_role
from portal.labs.services.tokens import token_create

pytestmark = pytest.mark.django_db
PAGE = "/lab/audit/"


def _entries(lab: Lab) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(lab_id=lab.pk).order_by("id"))


@pytest.fixture
def managing(client: Client, manager: User) -> Client:
    client.force_login(manager)
    return client


def test_a_manager_reads_the_log(managing: Client, lab: Lab, viewer: User) -> None:
    case_id = viewer.pk  # any id
    entry_note("case.viewed", lab_ids=[lab.pk], actor_id=viewer.pk, kind="case", object_id=case_id)
    text = managing.get(PAGE).content.decode()
    assert str(viewer) in text and ACTIONS["case.viewed"] in text
    assert "The chain ends at number" in text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("actor={viewer}", ["case.viewed"]),
        ("action=roi.saved", ["roi.saved"]),
        ("case={case}", ["roi.saved"]),
        ("until=2001-01-01", []),
        ("since=2001-01-01&action=case.viewed", ["case.viewed"]),
    ],
)
def test_the_log_is_searched_by_person_action_and_time(
    manager: User, viewer: User, lab: Lab, api_as: Any, query: str, found: list[str]
) -> None:
    case_id = lab.pk  # any id
    entry_note("case.viewed", lab_ids=[lab.pk], actor_id=viewer.pk)
    entry_note("roi.saved", lab_ids=[lab.pk], actor_id=manager.pk, kind="roi", case_id=case_id)
    requested = query.format(viewer=viewer.pk, case=case_id)
    answer = api_as(manager).get(f"/api/v1/audit/?{requested}")
    assert answer.status_code == 200
    assert [row["action"] for row in answer.json()["results"]] == found


def test_a_filter_that_is_not_valid_is_refused(manager: User, lab: Lab, api_as: Any) -> None:
    answer = api_as(manager).get("/api/v1/audit/?actor=nobody&action=nothing")
    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == {"actor", "action"}


def test_pages_of_the_log_cost_a_few_queries(
    managing: Client, lab: Lab, viewer: User, django_assert_max_num_queries: Any
) -> None:
    for _ in range(120):
        entry_note("case.viewed", lab_ids=[lab.pk], actor_id=viewer.pk)
    entries_seal()
    with django_assert_max_num_queries(19):
        answer = managing.get(PAGE, {"page": 2})
    assert len(answer.context["rows"]) == 50
    assert answer.context["page_obj"].number == 2


def test_the_log_is_exported_as_csv_and_json_lines(managing: Client, lab: Lab) -> None:
    for step in range(3):
        entry_note("case.viewed", lab_ids=[lab.pk], details={"step": step})
    query = {"action": "case.viewed"}
    lines = managing.get(f"{PAGE}export.jsonl", query).getvalue().decode().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["details"] for row in rows] == [{"step": 0}, {"step": 1}, {"step": 2}]
    assert [row["previous"] for row in rows[1:]] == [row["hash"] for row in rows[:-1]]
    table = managing.get(f"{PAGE}export.csv", query).getvalue().decode().splitlines()
    assert [row["hash"] for row in csv.DictReader(table)] == [row["hash"] for row in rows]
    assert managing.get(f"{PAGE}export.xml").status_code == 404
    assert _entries(lab)[-1].action == "audit.exported"


def test_the_head_is_the_last_seal(manager: User, lab: Lab, api_as: Any) -> None:
    entry_note("case.viewed", lab_ids=[lab.pk])
    head = api_as(manager).get("/api/v1/audit/head/").json()
    assert (head["lab"], head["number"]) == (str(lab.pk), AuditEntry.objects.count())


def test_the_head_and_an_export_wait_for_seals_that_an_outage_left_out(
    manager: User, lab: Lab, api_as: Any, managing: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "SEAL_AT_ONCE", 2)
    for _ in range(5):
        entry_note("case.viewed", lab_ids=[lab.pk])
    head = api_as(manager).get("/api/v1/audit/head/").json()
    assert head["number"] == AuditEntry.objects.filter(lab_id=lab.pk).count()
    for _ in range(5):
        entry_note("case.viewed", lab_ids=[lab.pk])
    answer = managing.get(f"{PAGE}export.jsonl", {"action": "case.viewed"})
    lines = answer.getvalue().decode().splitlines()
    assert len(lines) == 10 and all(json.loads(line)["hash"] for line in lines)


def test_sign_ins_sign_outs_and_failures_are_noted(client: Client, viewer: User, lab: Lab) -> None:
    right = {"login": viewer.email, "password": "correct horse battery"}
    client.post("/accounts/login/", right | {"password": "wrong"})
    assert client.post("/accounts/login/", right).status_code == 302
    client.post("/accounts/logout/")
    noted = [(entry.action, entry.actor_id, entry.object_id) for entry in _entries(lab)]
    assert noted == [
        ("account.sign_in_failed", None, viewer.pk),
        ("account.signed_in", viewer.pk, None),
        ("account.signed_out", viewer.pk, None),
    ]
    assert _entries(lab)[0].address == "127.0.0.1"


def test_an_unknown_address_is_stored_only_as_a_keyed_hash(client: Client, lab: Lab) -> None:
    sent = {"login": "Nobody@Else.example", "password": "wrong"}
    client.post("/accounts/login/", sent)
    entry = AuditEntry.objects.get(action="account.sign_in_failed")
    assert entry.lab_id == INSTALLATION
    assert entry.details == {"address": keyed_hash("nobody@else.example")}


def test_roles_and_tokens_are_noted_with_who_changed_them(
    manager: User, viewer: User, lab: Lab, rf: Any
) -> None:
    from datetime import timedelta

    member_set_role(viewer.memberships.get(), role=Role.ANNOTATOR, by=manager)
    token_create(viewer, name="LIS", scope=TokenScope.READ, expires_in=timedelta(days=1))
    role, token = _entries(lab)
    assert (role.action, role.actor_id, role.object_id) == (
        "member.role_changed",
        manager.pk,
        viewer.pk,
    )
    assert role.details == {"role": "annotator"}
    assert (token.action, token.actor_id, token.details) == (
        "token.created",
        viewer.pk,
        {"scope": "read"},
    )


def test_an_undeclared_event_is_logged(lab: Lab) -> None:
    event_emit("thing.done", lab_id=lab.pk, payload={"thing_id": str(lab.pk), "name": "secret"})
    (entry,) = _entries(lab)
    assert (entry.action, entry.kind, entry.object_id, entry.details) == (
        "thing.done",
        "thing",
        lab.pk,
        {},
    )


@pytest.mark.parametrize("path", ["/cases/", "/api/v1/assignments/"])  # the second: once an hour
def test_without_an_audit_entry_the_answer_is_withheld(
    managing: Client, lab: Lab, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise DatabaseError("no room")

    monkeypatch.setattr("portal.operations.audit_middleware.entry_note", refuse)
    for _ in range(2):  # a repeat is not taken for one that was noted
        answer = managing.get(path)
        assert answer.status_code == 503 and b"audit log" in answer.content
    assert chain_break(lab.pk) is None

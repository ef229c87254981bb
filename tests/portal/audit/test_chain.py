"""The chain: what it covers, what breaks it, and that many who write and seal leave one chain."""

from __future__ import annotations

import uuid
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from portal.audit.append_only import TABLES
from portal.audit.chain import GENESIS
from portal.audit.models import INSTALLATION, AuditEntry, AuditSeal
from portal.audit.selectors import Head, chain_break, chain_head
from portal.audit.services import entries_seal, entries_seal_all, entry_note
from portal.labs.models import Lab

pytestmark = pytest.mark.django_db


@pytest.fixture
def chain(lab: Lab) -> list[AuditSeal]:
    for number in range(5):
        entry_note("case.viewed", lab_ids=[lab.pk], kind="case", details={"step": number})
    entries_seal()
    return list(AuditSeal.objects.filter(lab_id=lab.pk).order_by("number"))


def _behind_the_models(statement: str, *values: Any) -> None:
    """Run a statement as a database administrator who disables the triggers first."""
    with connection.cursor() as cursor:
        for table in TABLES:
            if connection.vendor == "postgresql":
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            else:
                cursor.execute(f"DROP TRIGGER IF EXISTS {table}_no_update")
                cursor.execute(f"DROP TRIGGER IF EXISTS {table}_no_delete")
        cursor.execute(statement, values)


def test_each_seal_holds_the_hash_of_the_one_before(chain: list[AuditSeal]) -> None:
    assert [seal.number for seal in chain] == [1, 2, 3, 4, 5]
    assert [seal.previous for seal in chain] == [GENESIS, *(seal.hash for seal in chain[:-1])]
    assert len({seal.hash for seal in chain}) == 5


def test_sealing_again_adds_nothing(chain: list[AuditSeal], lab: Lab) -> None:
    assert entries_seal() == entries_seal_all() == 0
    assert chain_break(lab.pk) is None


def test_each_lab_has_a_separate_chain(chain: list[AuditSeal], lab: Lab, other_lab: Lab) -> None:
    entry_note("case.viewed", lab_ids=[lab.pk, other_lab.pk])
    entry_note("account.sign_in_failed", lab_ids=[])
    assert entries_seal() == 3
    heads = [chain_head(lab_id) for lab_id in (lab.pk, other_lab.pk, INSTALLATION)]
    assert [head.number if head else 0 for head in heads] == [6, 1, 1]


ENTRY, SEAL = "audit_auditentry", "audit_auditseal"
CHANGES = {
    "action": (f"UPDATE {ENTRY} SET action = 'x'", "its entry was changed"),
    "time": (f"UPDATE {ENTRY} SET at = '2001-01-01 00:00:00+00:00'", "its entry was changed"),
    "entry": (f"DELETE FROM {ENTRY}", "its entry is missing"),
    "seal": (f"DELETE FROM {SEAL}", "its seal is missing"),
    "hash": (f"UPDATE {SEAL} SET hash = 'f'", "its entry was changed"),
    "previous": (f"UPDATE {SEAL} SET previous = 'f'", "it does not follow the one before it"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_first_broken_link_is_found(chain: list[AuditSeal], lab: Lab, change: str) -> None:
    statement, reason = CHANGES[change]
    changed = chain[2].pk if SEAL in statement else chain[2].entry_id
    assert chain_break(lab.pk) is None
    _behind_the_models(f"{statement} WHERE id = %s", changed)
    gap = chain_break(lab.pk)
    assert gap is not None and (gap.number, gap.reason) == (3, reason)


def test_a_truncated_chain_is_detected_by_a_saved_head(chain: list[AuditSeal], lab: Lab) -> None:
    head = chain_head(lab.pk)
    assert head == Head(lab.pk, 5, chain[-1].hash)
    _behind_the_models("DELETE FROM audit_auditseal WHERE id = %s", chain[-1].pk)
    assert chain_break(lab.pk) is None  # the chain by itself cannot know
    gap = chain_break(lab.pk, expected=[head] if head else [])
    assert gap is not None and gap.number == 5
    other = Head(lab.pk, 4, "0" * 64)
    gap = chain_break(lab.pk, expected=[other])
    assert gap is not None and gap.reason == "it differs from the head that was kept"


def test_the_command_prints_the_heads_and_fails_on_a_break(
    chain: list[AuditSeal], lab: Lab
) -> None:
    out = StringIO()
    call_command("audit_verify", stdout=out)
    line = f"{lab.pk}:5:{chain[-1].hash}"
    assert out.getvalue().splitlines() == [line]
    call_command("audit_verify", "--expect", line, stdout=StringIO())
    with pytest.raises(CommandError, match="LAB:NUMBER:HASH"):
        call_command("audit_verify", "--expect", "nothing")
    with pytest.raises(CommandError, match=r"1: .*9"):
        call_command("audit_verify", "--expect", f"{uuid.UUID(int=7)}:9:{'0' * 64}")
    _behind_the_models("UPDATE audit_auditentry SET action = 'x' WHERE id = %s", chain[1].entry_id)
    with pytest.raises(CommandError, match=f"trigger .* is missing[^$]*lab {lab.pk}: number 2"):
        call_command("audit_verify", stdout=StringIO())


def test_the_command_compares_every_saved_head(chain: list[AuditSeal], lab: Lab) -> None:
    stored = [f"--expect={lab.pk}:{seal.number}:{seal.hash}" for seal in chain[1:3]]
    call_command("audit_verify", *stored, stdout=StringIO())
    other = f"--expect={lab.pk}:2:{'0' * 64}"
    for expected in ([other, stored[1]], [stored[1], other]):
        with pytest.raises(CommandError, match="number 2"):
            call_command("audit_verify", *expected, stdout=StringIO())


def test_an_entry_of_a_late_transaction_is_sealed_later(lab: Lab) -> None:
    early = AuditEntry(pk=100, lab_id=lab.pk, action="case.viewed")
    AuditEntry.objects.bulk_create([AuditEntry(pk=101, lab_id=lab.pk, action="case.viewed")])
    assert entries_seal() == 1
    AuditEntry.objects.bulk_create([early])
    assert entries_seal() == 1
    assert [seal.entry_id for seal in AuditSeal.objects.order_by("number")] == [101, 100]
    assert chain_break(lab.pk) is None

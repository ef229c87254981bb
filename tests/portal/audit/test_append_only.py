"""Neither the models nor the database let anything in the log be changed."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction

from portal.audit.append_only import REFUSAL, TABLES, triggers_missing
from portal.audit.models import AppendOnlyError, AuditEntry, AuditSeal
from portal.audit.services import entries_seal, entry_note
from portal.labs.models import Lab

pytestmark = pytest.mark.django_db


@pytest.fixture
def entry(lab: Lab) -> AuditEntry:
    entry_note("case.viewed", lab_ids=[lab.pk])
    entries_seal()
    return AuditEntry.objects.get()


def test_the_models_refuse_every_change(entry: AuditEntry) -> None:
    changes = (
        entry.delete,
        entry.save,
        entry.seal.delete,
        AuditEntry.objects.all().delete,
        lambda: AuditEntry.objects.filter(pk=entry.pk).update(action="x"),
        lambda: AuditEntry.objects.bulk_update([entry], ["action"]),
        lambda: AuditSeal.objects.update(number=7),
    )
    for change in changes:
        with pytest.raises(AppendOnlyError):
            change()
    assert AuditEntry.objects.count() == AuditSeal.objects.count() == 1


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("statement", ["DELETE FROM {}", "UPDATE {} SET lab_id = lab_id"])
def test_the_database_refuses_every_change(entry: AuditEntry, table: str, statement: str) -> None:
    refused = pytest.raises(DatabaseError, match=REFUSAL)
    with refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement.format(table))
    assert AuditEntry.objects.count() == AuditSeal.objects.count() == 1


def test_no_trigger_is_missing_and_a_missing_one_is_named(db: None) -> None:
    assert triggers_missing() == []
    with connection.cursor() as cursor:
        name = f"{TABLES[0]}_no_delete" if connection.vendor == "sqlite" else f"{TABLES[0]}_kept"
        where = "" if connection.vendor == "sqlite" else f" ON {TABLES[0]}"
        cursor.execute(f"DROP TRIGGER {name}{where}")
    assert triggers_missing() == [name]

"""Neither the models nor the database let anything in the log be changed."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction

from portal.audit.append_only import REFUSAL, TABLES, triggers_missing, triggers_set
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


COLUMNS = {
    "audit_auditentry": "lab_id, actor_id, token_id, action, outcome, kind, object_id, case_id, "
    "address, details, at",
    "audit_auditseal": "lab_id, number, entry_id, previous, hash",
}
SQLITE = (
    "INSERT OR REPLACE INTO {t} (id, {c}) SELECT id, {c} FROM {t}",
    "REPLACE INTO {t} (id, {c}) SELECT id, {c} FROM {t}",
    "INSERT OR REPLACE INTO {t} SELECT * FROM {t}",
    "UPDATE OR REPLACE {t} SET id = id + 1",
    "INSERT INTO {t} (id, {c}) SELECT id, {c} FROM {t} WHERE true "
    "ON CONFLICT (id) DO UPDATE SET lab_id = excluded.lab_id",
    "INSERT OR IGNORE INTO {t} (id, {c}) SELECT id, {c} FROM {t}",
)
POSTGRES = (
    "TRUNCATE {t}",
    "TRUNCATE {t} CASCADE",
    "INSERT INTO {t} (id, {c}) OVERRIDING SYSTEM VALUE SELECT id, {c} FROM {t} "
    "ON CONFLICT (id) DO UPDATE SET lab_id = excluded.lab_id",
    "MERGE INTO {t} USING {t} other ON {t}.id = other.id WHEN MATCHED THEN DELETE",
    "WITH gone AS (DELETE FROM {t} RETURNING id) SELECT count(*) FROM gone",
)


def _contents() -> list[object]:
    statements: list[object] = []
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"SELECT * FROM {table}")
            statements += cursor.fetchall()
    return statements


def _refuses(statement: str, table: str) -> None:
    before = _contents()
    refused = pytest.raises(DatabaseError, match=REFUSAL)
    with refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement.format(t=table, c=COLUMNS[table]))
    assert _contents() == before


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("statement", SQLITE)
@pytest.mark.parametrize("recursive", ["ON", "OFF"])
def test_sqlite_refuses_replacement(
    entry: AuditEntry, table: str, statement: str, recursive: str
) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("a statement of SQLite")
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA recursive_triggers = {recursive}")
    try:
        _refuses(statement, table)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA recursive_triggers = OFF")


@pytest.mark.parametrize("values", ["entry_id", "lab_id, number"])
def test_sqlite_replaces_no_seal_by_its_other_unique_values(entry: AuditEntry, values: str) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("a statement of SQLite")
    other = {"number": "number + 1", "entry_id": "entry_id + 1"}
    changed = other["number" if values == "entry_id" else "entry_id"]
    columns = COLUMNS["audit_auditseal"].replace(changed.split()[0], changed)
    _refuses(
        f"INSERT OR REPLACE INTO {{t}} (id, {{c}}) SELECT id + 1, {columns} FROM {{t}}",
        "audit_auditseal",
    )


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("statement", POSTGRES)
def test_postgresql_refuses_changes(entry: AuditEntry, table: str, statement: str) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("a statement of PostgreSQL")
    _refuses(statement, table)


def test_postgresql_refuses_as_a_replica_too(entry: AuditEntry) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("a setting of PostgreSQL")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
    _refuses("DELETE FROM {t}", "audit_auditentry")


def test_no_deletion_in_another_table_deletes_entries(entry: AuditEntry, lab: Lab) -> None:
    before = _contents()
    lab.delete()
    assert _contents() == before
    for model in (AuditEntry, AuditSeal):
        keys = [
            field for field in model._meta.get_fields() if getattr(field, "db_constraint", False)
        ]
        assert keys == []


def test_no_trigger_is_missing_and_a_missing_one_is_named() -> None:
    assert triggers_missing() == []
    with connection.cursor() as cursor:
        name = f"{TABLES[0]}_no_delete" if connection.vendor == "sqlite" else f"{TABLES[0]}_kept"
        where = "" if connection.vendor == "sqlite" else f" ON {TABLES[0]}"
        cursor.execute(f"DROP TRIGGER {name}{where}")
    assert triggers_missing() == [name]
    triggers_set("default")
    assert triggers_missing() == []


def test_a_trigger_without_effect_counts_as_missing_and_is_replaced(entry: AuditEntry) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            name = f"{TABLES[0]}_no_delete"
            cursor.execute(f"DROP TRIGGER {name}")
            cursor.execute(
                f"CREATE TRIGGER {name} BEFORE DELETE ON {TABLES[0]} BEGIN SELECT 1; END"
            )
        else:
            name = f"{TABLES[0]}_kept"
            cursor.execute(f"ALTER TABLE {TABLES[0]} DISABLE TRIGGER {name}")
    assert triggers_missing() == [name]
    triggers_set("default")
    assert triggers_missing() == []
    _refuses("DELETE FROM {t}", TABLES[0])

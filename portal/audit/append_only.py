"""Triggers that make the database itself refuse to change the audit log.

Set after every ``migrate``, not by a migration: SQLite drops a table's triggers when a later
migration rebuilds it.
"""

from __future__ import annotations

from typing import Any

from django.db import connections

TABLES = ("audit_auditentry", "audit_auditseal")
REFUSAL = "the audit log is append-only"

_POSTGRES = f"""
CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'restrict_violation'; END $$
"""
_POSTGRES_ROW = """
CREATE OR REPLACE TRIGGER {table}_kept BEFORE UPDATE OR DELETE ON {table}
FOR EACH ROW EXECUTE FUNCTION audit_refuse()
"""
_POSTGRES_ALL = """
CREATE OR REPLACE TRIGGER {table}_not_emptied BEFORE TRUNCATE ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()
"""
_SQLITE = """
CREATE TRIGGER IF NOT EXISTS {table}_no_{verb} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, '{refusal}'); END
"""


def triggers_set(using: str) -> None:
    """Set the triggers where they are not."""
    connection = connections[using]
    with connection.cursor() as cursor:
        for statement in _statements(connection.vendor):
            cursor.execute(statement)


def triggers_missing(using: str = "default") -> list[str]:
    """Names of the triggers that are not there."""
    connection = connections[using]
    if connection.vendor == "postgresql":
        query = "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'"
        wanted = [f"{table}_{end}" for table in TABLES for end in ("kept", "not_emptied")]
    else:
        query = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        wanted = [f"{table}_no_{verb}" for table in TABLES for verb in ("update", "delete")]
    with connection.cursor() as cursor:
        cursor.execute(query)
        there = {name for (name,) in cursor.fetchall()}
    return [name for name in wanted if name not in there]


def after_migrate(sender: Any, using: str, **_: Any) -> None:
    """Receiver of ``post_migrate``."""
    tables = connections[using].introspection.table_names()
    if set(TABLES) <= set(tables):
        triggers_set(using)


def _statements(vendor: str) -> list[str]:
    if vendor == "postgresql":
        forms = (_POSTGRES_ROW, _POSTGRES_ALL)
        return [_POSTGRES, *(form.format(table=table) for table in TABLES for form in forms)]
    return [
        _SQLITE.format(table=table, verb=verb, refusal=REFUSAL)
        for table in TABLES
        for verb in ("update", "delete")
    ]

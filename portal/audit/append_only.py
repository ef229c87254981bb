"""Database triggers that refuse changes of the audit log.

They are set after every ``migrate``, not by a migration: SQLite drops a table's triggers when a
later migration rebuilds it.

SQLite's ``REPLACE`` deletes a conflicting row without firing a trigger on deletion, so a third
trigger refuses to insert a row whose unique values are taken. PostgreSQL's triggers fire
``ALWAYS``: ``session_replication_role`` does not disable them.
"""

from __future__ import annotations

from typing import Any

from django.db import connections, transaction

UNIQUE = {
    "audit_auditentry": ("id = NEW.id",),
    "audit_auditseal": (
        "id = NEW.id",
        "entry_id = NEW.entry_id",
        "(lab_id = NEW.lab_id AND number = NEW.number)",
    ),
}
"""SQL conditions by which ``REPLACE`` and ``ON CONFLICT`` match a new row with a stored one."""
TABLES = tuple(UNIQUE)
REFUSAL = "the audit log is append-only"

_REFUSE_BODY = f" BEGIN RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'restrict_violation'; END "
_POSTGRES_FUNCTION = (
    "CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    f"$${_REFUSE_BODY}$$"
)
_POSTGRES = {
    "kept": "BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW",
    "not_emptied": "BEFORE TRUNCATE ON {table} FOR EACH STATEMENT",
}
_POSTGRES_FIRING = """
SELECT tgname FROM pg_trigger
JOIN pg_proc ON pg_proc.oid = tgfoid
WHERE NOT tgisinternal AND tgenabled = 'A' AND proname = 'audit_refuse' AND prosrc = %s
"""
_SQLITE = {
    "update": "BEFORE UPDATE ON {table}",
    "delete": "BEFORE DELETE ON {table}",
    "replace": ("BEFORE INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {is_the_same})"),
}


def triggers_set(using: str) -> None:
    """Set the triggers, replacing others of their names."""
    connection = connections[using]
    is_postgres = connection.vendor == "postgresql"
    with transaction.atomic(using), connection.cursor() as cursor:
        if is_postgres:
            cursor.execute(_POSTGRES_FUNCTION)
        for name, (table, statement) in _triggers(connection.vendor).items():
            on = f" ON {table}" if is_postgres else ""
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}{on}")
            cursor.execute(statement)
            if is_postgres:
                cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}")


def triggers_missing(using: str = "default") -> list[str]:
    """Names of triggers that are missing, disabled or different."""
    connection = connections[using]
    triggers = _triggers(connection.vendor)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(_POSTGRES_FIRING, [_REFUSE_BODY])
            present = {name for (name,) in cursor.fetchall()}
        else:
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            present = {
                name
                for name, sql in cursor.fetchall()
                if name in triggers and sql == triggers[name][1]
            }
    return [name for name in triggers if name not in present]


def triggers_drop(using: str) -> None:
    """Drop the triggers, for tests that empty their database."""
    connection = connections[using]
    with connection.cursor() as cursor:
        for name, (table, _) in _triggers(connection.vendor).items():
            on = f" ON {table}" if connection.vendor == "postgresql" else ""
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}{on}")


def after_migrate(sender: Any, using: str, **_: Any) -> None:
    """Set the triggers after ``post_migrate``."""
    tables = connections[using].introspection.table_names()
    if set(TABLES) <= set(tables):
        triggers_set(using)


def _triggers(vendor: str) -> dict[str, tuple[str, str]]:
    """Table and statement of each trigger, by name."""
    if vendor == "postgresql":
        return {
            f"{table}_{end}": (
                table,
                f"CREATE TRIGGER {table}_{end} {event_clause.format(table=table)} "
                "EXECUTE FUNCTION audit_refuse()",
            )
            for table in TABLES
            for end, event_clause in _POSTGRES.items()
        }
    return {
        f"{table}_no_{verb}": (
            table,
            f"CREATE TRIGGER {table}_no_{verb} "
            f"{event_clause.format(table=table, is_the_same=' OR '.join(same))} "
            f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END",
        )
        for table, same in UNIQUE.items()
        for verb, event_clause in _SQLITE.items()
    }

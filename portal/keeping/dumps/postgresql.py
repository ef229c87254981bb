"""PostgreSQL: every table by ``COPY`` in one snapshot, and back into a schema migrated to match."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from ml.types import JsonObject
from portal.keeping.vault import CHUNK_BYTES

_OWN = "django_migrations"  # written by the migrations themselves
_COLUMNS = """
    SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND is_generated = 'NEVER'
      AND table_name IN (SELECT tablename FROM pg_tables WHERE schemaname = current_schema())
    ORDER BY table_name, ordinal_position
"""


@contextmanager
def dump(folder: Path) -> Iterator[tuple[Any, JsonObject]]:
    """Write each table to a file, all as of one moment; see ``portal.keeping.dumps.Engine``."""
    wrapper = connection.copy()
    wrapper.ensure_connection()
    server: Any = wrapper.connection
    try:
        server.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

        def ask(query: str) -> list[tuple[Any, ...]]:
            found: list[tuple[Any, ...]] = server.execute(query).fetchall()
            return found

        tables: dict[str, list[str]] = {}
        for table, column in ask(_COLUMNS):
            tables.setdefault(table, []).append(column)
        migrations = ask(f"SELECT app, name FROM {_OWN} ORDER BY app, name")  # noqa: S608 - ours
        tables.pop(_OWN)
        for table, columns in tables.items():
            _copy_out(server, table, columns, _file(folder, table))
        yield ask, {"migrations": migrations, "tables": tables}
    finally:
        wrapper.close()


def load(folder: Path, schema: JsonObject) -> None:
    """Make the schema of the dump anew and fill it; see ``portal.keeping.dumps.Engine``.

    What was there is dropped: it may be of another version, or refuse to be emptied. The rows come
    in one transaction; a restore that was stopped is begun again.
    """
    _drop_all()
    _migrate_to([(app, name) for app, name in schema["migrations"]])
    tables: dict[str, list[str]] = schema["tables"]
    quote = connection.ops.quote_name
    with transaction.atomic(), connection.cursor() as cursor:
        names = ", ".join(map(quote, tables))  # migrations may have written rows of their own
        cursor.execute(f"TRUNCATE {names} RESTART IDENTITY")
        for table, columns in tables.items():
            names = ", ".join(map(quote, columns))
            statement = f"COPY {quote(table)} ({names}) FROM STDIN"
            with (
                gzip.open(_file(folder, table), "rb") as source,
                cursor.connection.cursor().copy(statement) as copy,
            ):
                while data := source.read(CHUNK_BYTES):
                    copy.write(data)
        _sequences_set(cursor, tables)


def _drop_all() -> None:
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"DROP TABLE {connection.ops.quote_name(table)} CASCADE")


def _file(folder: Path, table: str) -> Path:
    return folder / f"database.{table}.copy.gz"


def _copy_out(server: Any, table: str, columns: list[str], path: Path) -> None:
    quote = connection.ops.quote_name
    statement = f"COPY {quote(table)} ({', '.join(map(quote, columns))}) TO STDOUT"
    with (
        gzip.open(path, "wb", compresslevel=1) as target,
        server.cursor().copy(statement) as copy,
    ):
        for data in copy:
            target.write(data)


def _migrate_to(migrations: list[tuple[str, str]]) -> None:
    """Migrate to exactly these: the schema that the dump's columns fit."""
    recorder = MigrationRecorder(connection)
    recorder.ensure_schema()
    executor = MigrationExecutor(connection)
    wanted = set(migrations)
    inner = {parent for key in wanted for parent in executor.loader.graph.node_map[key].parents}
    leaves = sorted(wanted - {parent.key for parent in inner})
    executor.migrate(leaves)


def _sequences_set(cursor: Any, tables: dict[str, list[str]]) -> None:
    """Ids continue after the greatest one."""
    for table in tables:
        for sequence in connection.introspection.get_sequences(cursor, table):
            column = connection.ops.quote_name(sequence["column"])
            quoted = connection.ops.quote_name(table)
            cursor.execute(
                f"SELECT setval(pg_get_serial_sequence(%s, %s), COALESCE(MAX({column}), 1),"  # noqa: S608 - names of the schema
                f" MAX({column}) IS NOT NULL) FROM {quoted}",
                [quoted, sequence["column"]],
            )

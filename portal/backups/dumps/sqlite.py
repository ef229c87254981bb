"""Dumps of SQLite by ``VACUUM INTO``, loaded by its backup API."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.db import connection

from portal.core.errors import ConflictError


@contextmanager
def dump(path: Path) -> Iterator[Any]:
    """Write the database to a file; see ``portal.backups.dumps.Engine``."""
    path.unlink(missing_ok=True)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM INTO %s", [str(path)])  # unlike the API, without deleted rows
    with closing(sqlite3.connect(path)) as copy:
        problems = copy.execute("PRAGMA quick_check").fetchall()
        if problems != [("ok",)]:
            raise ConflictError(
                f"The database is damaged: {problems[0][0]}", code="database-damaged"
            )
        yield lambda query: copy.execute(query).fetchall()


def load(path: Path) -> None:
    """Replace the database by a dump; see ``portal.backups.dumps.Engine``."""
    Path(connection.settings_dict["NAME"]).parent.mkdir(parents=True, exist_ok=True)
    with (
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as source,
        connection.wrap_database_errors,
    ):
        source.backup(_connection(), progress=_require_unlocked)
    connection.close()


def _connection() -> sqlite3.Connection:
    connection.ensure_connection()
    opened: sqlite3.Connection = connection.connection
    return opened


def _require_unlocked(status: int, _remaining: int, _total: int) -> None:
    """Raise ``ConflictError`` if another process holds a lock on the database."""
    if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        raise ConflictError(
            "Another process is using the database. Stop the portal, and try again.",
            code="database-in-use",
        )

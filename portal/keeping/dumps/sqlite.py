"""SQLite: ``VACUUM INTO`` a file, and the file back in its place."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connection

from ml.types import JsonObject
from portal.core.errors import ConflictError

NAME = "database.sqlite3"


@contextmanager
def dump(folder: Path) -> Iterator[tuple[Any, JsonObject]]:
    """Write the database as it is at one moment; see ``portal.keeping.dumps.Engine``."""
    path = folder / NAME
    path.unlink(missing_ok=True)  # of an earlier round
    with connection.cursor() as cursor:
        cursor.execute("VACUUM INTO %s", [str(path)])
    copy = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        found = copy.execute("PRAGMA quick_check").fetchall()
        if found != [("ok",)]:
            raise ConflictError(f"The database is damaged: {found[0][0]}", code="database-damaged")
        rows = copy.execute("SELECT app, name FROM django_migrations ORDER BY app, name").fetchall()
        yield (lambda query: copy.execute(query).fetchall()), {"migrations": rows}
    finally:
        copy.close()


def load(folder: Path, schema: JsonObject) -> None:
    """Put the file in the place of the database; see ``portal.keeping.dumps.Engine``."""
    target = Path(connection.settings_dict["NAME"])
    connection.close()
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}-restored")
    shutil.copyfile(folder / NAME, temporary)
    for suffix in ("-wal", "-shm"):
        target.with_name(target.name + suffix).unlink(missing_ok=True)
    temporary.replace(target)

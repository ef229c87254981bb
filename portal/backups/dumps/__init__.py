"""Dumps of the database by its own tools: VACUUM INTO and the backup API; pg_dump and psql.

Each engine has ``dump(path)``, a context in which the dumped state can be queried, and
``load(path)``, which replaces the content of the database in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, cast

from django.db import connection

from portal.backups.dumps import postgresql, sqlite
from portal.core.errors import ConflictError

Query = Callable[[str], list[tuple[Any, ...]]]
"""Function that queries the dumped state instead of the live database."""


class Engine(Protocol):
    """Dump and load of one kind of database."""

    def dump(self, path: Path) -> AbstractContextManager[Query]:
        """Write the database as of one moment to a file."""

    def load(self, path: Path) -> None:
        """Replace the content of the database by a dump; on an error, change nothing."""


_ENGINES = {"sqlite": cast("Engine", sqlite), "postgresql": cast("Engine", postgresql)}


def engine_name() -> str:
    """Kind of the installation's database: ``sqlite`` or ``postgresql``."""
    return connection.vendor


def engine_of(name: str) -> Engine:
    """Engine of a dump; ``ConflictError`` if this installation runs on the other."""
    if name != engine_name():
        raise ConflictError(
            f"The backup is from a {name} database, but this installation runs on {engine_name()}."
            " Set TESSERA_DATABASE_URL to a database of the same kind.",
            code="backup-other-engine",
        )
    return _ENGINES[name]


def require_known(migrations: list[tuple[str, str]]) -> None:
    """Refuse a dump that a newer version of the portal wrote."""
    from django.db.migrations.loader import MigrationLoader

    unknown = set(migrations) - set(MigrationLoader(None).disk_migrations)
    if unknown:
        app, name = min(unknown)
        raise ConflictError(
            f"The backup was made by a newer version. This version does not know {app}.{name}.",
            code="backup-newer",
        )

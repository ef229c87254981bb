"""A dump of the database, consistent while the portal writes, and its way back in.

SQLite is dumped by ``VACUUM INTO``: one read transaction, and what was deleted is not in the copy.
PostgreSQL is dumped table by table with ``COPY`` in one repeatable-read transaction: it needs no
program besides the portal, and neither a newer server nor a newer client refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from ml.types import JsonObject
from portal.core.errors import ConflictError
from portal.keeping.dumps import postgresql, sqlite

Query = Callable[[str], list[tuple[Any, ...]]]
"""Queries the database as of the dump, not as it is now."""


class Engine(Protocol):
    """What each database brings."""

    def dump(self, folder: Path) -> AbstractContextManager[tuple[Query, JsonObject]]:
        """Dump into a folder; inside, ask what was dumped. The object goes into the manifest."""

    def load(self, folder: Path, schema: JsonObject) -> None:
        """Make the database what was dumped."""


_ENGINES: dict[str, Any] = {"sqlite": sqlite, "postgresql": postgresql}


def engine_name() -> str:
    """``sqlite`` or ``postgresql``."""
    return str(connection.vendor)


def engine_of(name: str) -> Engine:
    """The engine of a dump; ``ConflictError`` where this installation runs on the other."""
    if name != engine_name():
        raise ConflictError(
            f"The backup is from a {name} database, but this installation runs on {engine_name()}."
            " Set TESSERA_DATABASE_URL to a database of the same kind.",
            code="backup-other-engine",
        )
    engine: Engine = _ENGINES[name]
    return engine


def require_known(schema: JsonObject) -> None:
    """Refuse a dump that a newer version of the portal wrote."""
    from django.db.migrations.loader import MigrationLoader

    known = set(MigrationLoader(None).disk_migrations)
    unknown = [f"{app}.{name}" for app, name in schema["migrations"] if (app, name) not in known]
    if unknown:
        raise ConflictError(
            f"The backup was made by a newer version. This version does not know {unknown[0]}.",
            code="backup-newer",
        )


def migrations_applied() -> list[tuple[str, str]]:
    """What the database was migrated to."""
    return sorted(MigrationRecorder(connection).applied_migrations())

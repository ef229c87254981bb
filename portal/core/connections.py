"""Database connections outside of Django's request cycle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import InterfaceError, OperationalError, close_old_connections, connection


def connection_refresh() -> None:
    """Drop a connection that broke or outlived its age, as Django does around each request.

    Does nothing inside a transaction: whoever opened it still needs the connection.
    """
    if not connection.in_atomic_block:
        close_old_connections()


@contextmanager
def snapshot() -> Iterator[None]:
    """Queries inside see the database as of one moment, whatever others commit in the meantime.

    Nothing may be written inside, and nobody has to wait for it. Within a transaction the queries
    see what that one sees.
    """
    if connection.in_atomic_block:
        yield
        return
    # Not ``atomic``: on SQLite it would keep every writer out.
    is_postgresql = connection.vendor == "postgresql"
    begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if is_postgresql else "BEGIN DEFERRED"
    with connection.cursor() as cursor:
        cursor.execute(begin)
        try:
            yield
        finally:
            cursor.execute("COMMIT")


def database_is_away(error: BaseException | None) -> bool:
    """Whether this error only says that the database does not answer now, or not in time."""
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    return "database is locked" in str(error) or not connection.is_usable()

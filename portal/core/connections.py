"""Database connections outside of Django's request cycle."""

from __future__ import annotations

from django.db import InterfaceError, OperationalError, close_old_connections, connection


def connection_refresh() -> None:
    """Drop a connection that broke or outlived its age, as Django does around each request.

    Does nothing inside a transaction: whoever opened it needs the connection still.
    """
    if not connection.in_atomic_block:
        close_old_connections()


def database_is_away(error: BaseException | None) -> bool:
    """Whether this error only says that the database does not answer, or not in time: it will."""
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    return "database is locked" in str(error) or not connection.is_usable()

"""Database connections outside of Django's request cycle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import InterfaceError, OperationalError, close_old_connections, connection

from portal.core.errors import error_chain

_TRANSIENT_CLASSES = {"08", "40", "53", "57"}
"""Classes of SQLSTATE: connection, rollback of a transaction, resources, operator intervention."""
_TRANSIENT_STATES = {"25P03", "55P03"}
"""SQLSTATE of a transaction that was idle too long, and of a lock that is not available."""


def connection_refresh() -> None:
    """Close a broken or expired connection, as Django does around each request.

    Does nothing inside a transaction.
    """
    if not connection.in_atomic_block:
        close_old_connections()


@contextmanager
def snapshot() -> Iterator[None]:
    """Read-only snapshot: queries inside do not see later commits, and block nobody.

    Inside a transaction the queries see what the transaction sees.
    """
    if connection.in_atomic_block:
        yield
        return
    # Not ``atomic``, which on SQLite would lock out all writers.
    is_postgresql = connection.vendor == "postgresql"
    begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if is_postgresql else "BEGIN DEFERRED"
    with connection.cursor() as cursor:
        cursor.execute(begin)
        try:
            yield
        finally:
            cursor.execute("COMMIT")


def database_is_away(error: BaseException | None) -> bool:
    """Return whether an error or one of its causes means that the database cannot answer now.

    It is unreachable or locked, or it ended the transaction: a deadlock, a limit of time or
    resources, a shutdown. The same request may succeed later.
    """
    for cause in error_chain(error):
        state = str(getattr(cause, "sqlstate", None) or "")
        if state[:2] in _TRANSIENT_CLASSES or state in _TRANSIENT_STATES:
            return True
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    return "database is locked" in str(error) or not connection.is_usable()

"""Database locks, which work across processes and machines."""

from __future__ import annotations

import hashlib

from django.db import connection, connections


def transaction_lock(*names: str, idle_timeout_s: float | None = None) -> None:
    """Acquire named locks until the transaction ends.

    On PostgreSQL these are advisory locks, acquired in a fixed order to avoid deadlocks. On SQLite
    a transaction is the only writer from its start (``BEGIN IMMEDIATE``).

    Args:
        idle_timeout_s: PostgreSQL ends the transaction and its connection if this process sends no
            statement for so long, so that a paused process does not block all others. Its next
            statement raises ``InternalError``.
    Raises:
        RuntimeError: Called outside of a transaction.
    """
    if not _is_shared():
        return
    keys = sorted({_key(name) for name in names})
    with connection.cursor() as cursor:
        if idle_timeout_s is not None:
            timeout_ms = str(round(1000 * idle_timeout_s))
            cursor.execute(
                "SELECT set_config('idle_in_transaction_session_timeout', %s, true)", [timeout_ms]
            )
        for key in keys:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


def transaction_lock_at_once(name: str) -> bool:
    """``transaction_lock`` without waiting: False if another transaction has the lock."""
    if not _is_shared():
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_key(name)])
        return bool(cursor.fetchone()[0])


def session_lock(name: str, *, using: str) -> None:
    """Acquire a named lock of PostgreSQL until the connection closes; SQLite needs none.

    The session of a killed client lives until its last statement ends. This waits for it.
    """
    if connections[using].vendor == "postgresql":
        with connections[using].cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [_key(name)])


def _is_shared() -> bool:
    """Return whether other transactions can write at the same time."""
    if not connection.in_atomic_block:
        raise RuntimeError("a lock of a transaction needs a transaction")
    return connection.vendor == "postgresql"


def _key(name: str) -> int:
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)

"""Locks that the database holds: they work between processes and between machines."""

from __future__ import annotations

import hashlib

from django.db import connection


def transaction_lock(*names: str) -> None:
    """Wait until no other transaction holds one of these names; held until this one ends.

    PostgreSQL has advisory locks for it. On SQLite a transaction is the only writer from its first
    statement (``BEGIN IMMEDIATE``), so there is nothing more to lock. Several names are taken in
    one order everywhere, so that two transactions cannot wait for each other.

    Raises:
        RuntimeError: outside of a transaction, where nothing would be held.
    """
    if not _is_shared():
        return
    keys = sorted({_key(name) for name in names})
    with connection.cursor() as cursor:
        for key in keys:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


def transaction_lock_at_once(name: str) -> bool:
    """As ``transaction_lock``, without waiting: False if another transaction holds the name."""
    if not _is_shared():
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_key(name)])
        return bool(cursor.fetchone()[0])


def _is_shared() -> bool:
    """Whether others can write beside this transaction."""
    if not connection.in_atomic_block:
        raise RuntimeError("a lock of a transaction needs a transaction")
    return connection.vendor == "postgresql"


def _key(name: str) -> int:
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)

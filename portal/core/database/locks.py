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
    if not connection.in_atomic_block:
        raise RuntimeError("transaction_lock needs a transaction")
    if connection.vendor != "postgresql":
        return
    keys = sorted({_key(name) for name in names})
    with connection.cursor() as cursor:
        for key in keys:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


def _key(name: str) -> int:
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)

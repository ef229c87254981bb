"""One lock for each content, held by the database: by who places its bytes and who drops them.

``test_races`` lets processes meet, as often as they happen to; this asks for the lock itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection, transaction

from portal.archive.services.assets import asset_lock, asset_placing
from portal.core.database.locks import transaction_lock
from portal.labs.models import Lab

FIRST, SECOND = "1" * 64, "2" * 64


def _held() -> set[tuple[int, int]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT classid, objid FROM pg_locks"
            " WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid()"
        )
        return {(int(high), int(low)) for high, low in cursor.fetchall()}


@pytest.mark.django_db(transaction=True)
def test_bytes_are_placed_and_dropped_under_one_lock(
    lab: Lab, storage: Path, tmp_path: Path
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("on SQLite a transaction is the only writer")
    received = tmp_path / "received"
    received.write_bytes(b"pixels")
    with asset_placing(lab.pk, FIRST, received=received):
        placing = _held()
    with transaction.atomic():
        asset_lock((lab.pk, FIRST))
        dropping = _held()
    with transaction.atomic():
        asset_lock((lab.pk, SECOND))
        another = _held()
    assert len(dropping) == 1 and dropping < placing
    assert len(another) == 1 and not another & placing
    assert _held() == set()


@pytest.mark.django_db(transaction=True)
def test_a_lock_outside_of_a_transaction_is_refused() -> None:
    with pytest.raises(RuntimeError, match="transaction"):
        transaction_lock("a name")

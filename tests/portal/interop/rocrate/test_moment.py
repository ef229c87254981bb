"""An export shows its case as of one moment, and keeps nobody waiting."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from portal.core import connections
from portal.core.connections import snapshot
from portal.core.environment import SQLITE_OPTIONS
from portal.interop.rocrate.services import exports
from portal.interop.rocrate.services.exports import case_export_to
from tests.portal.interop.conftest import Lab1


@pytest.fixture
def two(tmp_path: Path, db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """Two connections to one database, the first of which is that of ``snapshot``."""
    pair = connection.copy(), connection.copy()
    if connection.vendor == "sqlite":  # that of tests is in memory, where readers keep writers out
        for side in pair:
            side.settings_dict |= {"NAME": str(tmp_path / "a.sqlite3"), "OPTIONS": SQLITE_OPTIONS}
    monkeypatch.setattr(connections, "connection", pair[0])
    with pair[0].cursor() as cursor:
        cursor.execute("CREATE TABLE of_this_test (number integer)")
    yield pair
    with pair[0].cursor() as cursor:
        cursor.execute("DROP TABLE of_this_test")
    for side in pair:
        side.close()


def _count(one: Any) -> int:
    with one.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM of_this_test")
        return int(cursor.fetchone()[0])


def test_concurrent_writes_are_neither_included_nor_blocked(two: tuple[Any, Any]) -> None:
    mine, other = two
    with snapshot():
        assert _count(mine) == 0
        with other.cursor() as cursor:
            cursor.execute("INSERT INTO of_this_test VALUES (1)")
        assert (_count(mine), _count(other)) == (0, 1)
    assert _count(mine) == 1
    with pytest.raises(ZeroDivisionError), snapshot():
        raise ZeroDivisionError
    assert _count(mine) == 1


def test_all_records_of_an_export_are_read_within(
    held: Lab1, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_inside, read = False, []
    rows_of, case_whole = exports.rows_of, exports.case_whole

    @contextmanager
    def watched() -> Iterator[None]:
        nonlocal is_inside
        is_inside = True
        yield
        is_inside = False

    def noted(query: Any) -> Any:
        for row in rows_of(query):
            read.append(is_inside)
            yield row

    def request(**about: Any) -> Any:
        read.append(is_inside)
        return case_whole(**about)

    monkeypatch.setattr(exports, "snapshot", watched)
    monkeypatch.setattr(exports, "rows_of", noted)
    monkeypatch.setattr(exports, "case_whole", request)
    out = tmp_path / "case.zip"
    case_export_to(user=held.manager, case=held.world.case, out=out, as_folder=False)
    assert len(read) > 5 and all(read)
    assert zipfile.ZipFile(out).testzip() is None

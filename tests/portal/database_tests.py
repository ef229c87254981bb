"""A plugin of ``test_postgresql``: the collected tests that use the database, and a quick flush."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

DATABASE_FIXTURES = {"db", "transactional_db"}


def pytest_configure() -> None:
    """Empty tables by DELETE: TRUNCATE makes new files of each table and its indexes."""
    from django.db.backends.postgresql.operations import DatabaseOperations

    def sql_flush(
        operations: DatabaseOperations, style: Any, tables: Sequence[str], **_: Any
    ) -> list[str]:
        return ["; ".join(f"DELETE FROM {operations.quote_name(table)}" for table in tables)]

    DatabaseOperations.sql_flush = sql_flush


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what never opens a connection: it would only be run twice."""

    def needs_database(item: pytest.Item) -> bool:
        wanted = DATABASE_FIXTURES & set(getattr(item, "fixturenames", ()))
        return bool(wanted) or item.get_closest_marker("django_db") is not None

    config.hook.pytest_deselected(items=[item for item in items if not needs_database(item)])
    items[:] = [item for item in items if needs_database(item)]

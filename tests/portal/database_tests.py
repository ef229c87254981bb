"""A plugin of ``test_postgresql``: select the collected tests that use the database."""

from __future__ import annotations

import pytest

DATABASE_FIXTURES = {"db", "transactional_db"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what never opens a connection: it would only be run twice."""

    def needs_database(item: pytest.Item) -> bool:
        wanted = DATABASE_FIXTURES & set(getattr(item, "fixturenames", ()))
        return bool(wanted) or item.get_closest_marker("django_db") is not None

    config.hook.pytest_deselected(items=[item for item in items if not needs_database(item)])
    items[:] = [item for item in items if needs_database(item)]

"""A plugin of ``test_postgresql``: of the tests collected, those that ask the database."""

from __future__ import annotations

import pytest

ASKING = {"db", "transactional_db"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what never opens a connection: it would only be run twice."""

    def asks(item: pytest.Item) -> bool:
        wanted = ASKING & set(getattr(item, "fixturenames", ()))
        return bool(wanted) or item.get_closest_marker("django_db") is not None

    config.hook.pytest_deselected(items=[item for item in items if not asks(item)])
    items[:] = [item for item in items if asks(item)]

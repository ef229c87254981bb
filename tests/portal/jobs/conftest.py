"""Fixture that registers kinds of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from portal.core import tasks

Kind = Callable[..., str]


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """``kind(function, **options)`` registers it and returns the kind's name."""
    monkeypatch.setattr(tasks, "REGISTRY", tasks.REGISTRY)
    names: list[str] = []

    def register(function: Callable[..., Any], **options: Any) -> str:
        name = f"test_{len(names)}"
        tasks.job_task(name, **options)(function)
        names.append(name)
        return name

    yield register
    for name in names:
        tasks.REGISTRY.pop(name, None)
